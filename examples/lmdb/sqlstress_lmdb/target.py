"""LMDB as a target: what `Target` in sqlstress/targets/place.py asks for."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from sqlstress_lmdb.place import LmdbPlace
from sqlstress_lmdb.settings import checked as _checked
from sqlstress_lmdb.settings import durability, explained, foresees

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report import SqliteBuild
    from sqlstress.report.case import Case
    from sqlstress.report.server import Server

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
    "untold",
]

STORES = True
FILES: str | None = r"kv(_\d+)?\.mdb(-lock)?"
DESCRIPTORS = 3
"""The data, once more to sync what says where it begins, and the lock file."""


def open_place(case: Case, where: Path) -> LmdbPlace:
    return LmdbPlace(case, where)


def checked(case: Case, server: Server, anyway: bool) -> Case:
    return _checked(case)


def serving(cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
    return nullcontext()


def preload(driver: str) -> tuple[str, ...]:
    return "sqlstress_lmdb.keyvalue", "lmdb"


def explain(driver: str, error: Exception) -> str:
    return explained(error)


def lacks_native(driver: str) -> str:
    return "the loop in C speaks to SQLite and PostgreSQL only"


def untold(driver: str) -> str:
    return "LMDB does not say what it waits for"


def at_hand(driver: str, address: Dsn | None) -> str:
    build = describe(driver)
    return f"{build.library} {build.version} ({build.driver_version})"


def describe(driver: str) -> SqliteBuild:
    from sqlstress.report import SqliteBuild
    from sqlstress_lmdb.environments import load

    lmdb = load()
    version = ".".join(map(str, lmdb.version()))
    return SqliteBuild(driver, f"py-lmdb {lmdb.__version__}", version, "", (), library="LMDB")
