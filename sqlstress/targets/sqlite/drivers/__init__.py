"""The bindings of SQLite. A driver that is not installed costs nothing until it is chosen."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from sqlstress.errors import SqlstressError, UsageError, said
from sqlstress.targets.sqlite.drivers import codes
from sqlstress.targets.sqlite.drivers.base import Connection, Driver
from sqlstress.targets.sqlite.drivers.waiting import Waiting

DRIVERS = {
    "sqlite3": "sqlstress.targets.sqlite.drivers.sqlite3_driver",
    "apsw": "sqlstress.targets.sqlite.drivers.apsw_driver",
    "peewee": "sqlstress.targets.sqlite.drivers.peewee_driver",
}

VFSS = {
    "recording": "sqlstress.targets.sqlite.disk.recording_vfs",
    "image": "sqlstress.targets.sqlite.disk.image_vfs",
}
"""Stand-ins for a disk, below SQLite: only apsw can have them."""

__all__ = ["DRIVERS", "Connection", "Driver", "Waiting", "explain", "load_driver", "load_vfs"]


def load_driver(name: str) -> Driver:
    """Import a driver by its name in DRIVERS. Raises UsageError when it is not installed."""
    try:
        return cast(Driver, import_module(DRIVERS[name]))
    except ImportError as error:
        remedy = "use a Python that has it" if name == "sqlite3" else f"python -m pip install {name}"
        raise UsageError(
            f"the driver {name} is not installed ({error}): {remedy}, or choose another --driver."
        ) from error


def load_vfs(name: str) -> Any:
    """Import a module of VFSS by its name. Raises UsageError when apsw is not installed."""
    try:
        return import_module(VFSS[name])
    except ImportError as error:
        raise UsageError(
            f"power cuts need apsw, which is not installed ({error}): python -m pip install apsw."
        ) from error


def explain(name: str, error: Exception) -> str:
    """Return what went wrong, and what to do about it, with SQLite's name for what that driver met."""
    if isinstance(error, SqlstressError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    code = load_driver(name).result_code(error) if name in DRIVERS else None
    kind = type(error).__name__ if code is None else codes.name(code)
    advice = None if code is None else codes.advice(code)
    return f"{kind}: {said(error)}".removesuffix(": ") + (f" ({advice})" if advice else "")
