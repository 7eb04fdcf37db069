"""Both halves of an experiment, as its face names them."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast

from sqlstress.engine.protocols import Source, Work
from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.targets import open_place


def open_work(case: Case, folder: Path, salt: int, carry: dict[Any, Any]) -> Work:
    """Make the parent's half of one trial."""
    return face_of(case).open_work(case, open_place(case, folder), salt, carry)


def open_source(case: Case, folder: Path, worker: int, salt: int, shared: tuple[Any, ...]) -> Source:
    """Open a worker's half."""
    return cast(
        Source, resolve_name(face_of(case).worker)(case, open_place(case, folder), worker, salt, shared)
    )
