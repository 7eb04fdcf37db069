"""SQLite: drivers, files and buckets, settings, space, damage, and the disk below."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from sqlstress.target import DRIVERS as KNOWN
from sqlstress.targets.sqlite.drivers import DRIVERS, explain
from sqlstress.targets.sqlite.place import SqlitePlace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report import SqliteBuild
    from sqlstress.report.case import Case
    from sqlstress.report.server import Server
    from sqlstress.targets.directions import Directions

__all__ = [
    "DESCRIPTORS",
    "FILES",
    "STORES",
    "at_hand",
    "checked",
    "describe",
    "durability",
    "explain",
    "foresees",
    "lacks_native",
    "open_place",
    "preload",
    "serving",
    "stand_in",
    "untold",
]

STORES = True
FILES: str | None = r"kv(_\d+)?\.db(-wal|-shm|-journal)?"
DESCRIPTORS = 4
"""The database, its WAL, the wal-index, and in the parent the database once more.

SQLite closes no descriptor of a file on which the same process still holds a lock: of the connection
that filled a database one stays, as long as another connection keeps its WAL.
"""


def open_place(case: Case, where: Path) -> SqlitePlace:
    return SqlitePlace(case, where)


def checked(case: Case, server: Server, anyway: bool) -> Case:
    return case


def stand_in(folder: Path) -> Directions:
    """Return directions to a file that is not there."""
    from sqlstress.targets.directions import Directions

    return Directions(str((folder / "app.db").absolute()), {})


def serving(cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
    return nullcontext()


def durability(case: Case, effective: Mapping[str, str]) -> str:
    from sqlstress.targets.sqlite.library import durability

    return durability(effective)


def lacks_native(driver: str) -> str | None:
    from sqlstress.targets.sqlite.connections import lacks

    return _apart(driver) or lacks(driver)


def preload(driver: str) -> tuple[str, ...]:
    connections = "sqlstress.targets.sqlite.connections"
    return connections, DRIVERS[driver], "sqlstress.targets.native._native"


def foresees(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in DRIVERS


def untold(driver: str) -> str | None:
    return lacks_native(driver)


def _apart(driver: str) -> str | None:
    """Say why C code can't get at a driver's connections; None where it may."""
    return f"the binding {driver} hands over no connection" if KNOWN[driver].keyvalue else None


def at_hand(driver: str, address: Dsn | None) -> str:
    from sqlstress.targets.sqlite.drivers import load_driver

    binding, library = (loaded := load_driver(driver)).versions()
    return f"{loaded.LIBRARY} {library}{f' ({binding})' if binding else ''}"


def describe(driver: str) -> SqliteBuild:
    from sqlstress.targets.sqlite.library import describe

    return describe(driver)
