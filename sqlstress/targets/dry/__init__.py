"""A target that does nothing: what remains is the harness's own cost."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from sqlstress.errors import plainly
from sqlstress.target import NOTHING_STORED
from sqlstress.targets.dry.store import DryPlace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report.case import Case
    from sqlstress.report.server import Server

STORES = False
FILES: str | None = None
DESCRIPTORS = 0


def open_place(case: Case, where: Path) -> DryPlace:
    return DryPlace(case, where)


def preload(driver: str) -> tuple[str, ...]:
    return ("sqlstress.targets.dry.store",)


def explain(driver: str, error: Exception) -> str:
    return plainly(error)


def checked(case: Case, server: Server, anyway: bool) -> Case:
    return case


def serving(cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
    return nullcontext()


def durability(case: Case, effective: Mapping[str, str]) -> str:
    return f"{NOTHING_STORED}: the harness's own ceiling"


def lacks_native(driver: str) -> str | None:
    from sqlstress.targets.native import extension, lacking

    return lacking(extension)


def foresees(error: Exception) -> bool:
    return False


def untold(driver: str) -> str:
    return f"the {driver} driver stores nothing"


def at_hand(driver: str, address: Dsn | None) -> str:
    return "nothing is stored"


def describe(driver: str) -> None:
    """Name no library: there is none."""
