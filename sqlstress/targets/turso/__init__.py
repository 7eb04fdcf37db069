"""Turso: SQLite's file format and SQL, written anew. As released, it lets one process only into a file."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from sqlstress.targets.turso.connections import explained, foresees
from sqlstress.targets.turso.place import TursoPlace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
FILES: str | None = r"kv(_\d+)?\.db(-wal|-shm|-journal)?"
DESCRIPTORS = 4
"""Two for a worker: the database and its WAL. The parent works on the files as SQLite does."""


def open_place(case: Case, where: Path) -> TursoPlace:
    return TursoPlace(case, where)


def checked(case: Case, server: Server, anyway: bool) -> Case:
    from sqlstress.targets.turso.asked import checked

    return checked(case)


def serving(cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
    return nullcontext()


def preload(driver: str) -> tuple[str, ...]:
    return "sqlstress.targets.turso.keyvalue", "turso"


def explain(driver: str, error: Exception) -> str:
    return explained(error)


def durability(case: Case, effective: Mapping[str, str]) -> str:
    """Tell it as SQLite's: the words of its settings mean the same syncs there, counted on Linux.

    Where SQLite's own would not reach the platter, as on macOS, nothing better is said of Turso's.
    """
    from sqlstress.targets.sqlite.library import durability

    return durability(effective)


def lacks_native(driver: str) -> str:
    return "the loop in C needs SQLite's C interface, which pyturso has not"


def untold(driver: str) -> str:
    return "Turso does not say what it waits for"


def at_hand(driver: str, address: Dsn | None) -> str:
    build = describe(driver)
    return f"{build.library} {build.version} ({build.driver_version})"


def describe(driver: str) -> SqliteBuild:
    from importlib.metadata import version

    from sqlstress.report import SqliteBuild
    from sqlstress.targets.turso.connections import own_version

    own = own_version()
    return SqliteBuild(driver, f"pyturso {version('pyturso')}", own, "", (), library="Turso")
