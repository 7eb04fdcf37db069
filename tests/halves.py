"""Both halves of an experiment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlstress.engine.protocols import Source, Work
from sqlstress.experiment import experiment_of
from sqlstress.report.case import Case
from sqlstress.targets import open_place


def open_work(case: Case, folder: Path, salt: int, carry: dict[Any, Any]) -> Work:
    """Make the parent's half of one trial."""
    work: Work = experiment_of(case).open_work(case, open_place(case, folder), salt, carry)
    return work


def open_source(case: Case, folder: Path, worker: int, salt: int, shared: tuple[Any, ...]) -> Source:
    """Open a worker's half."""
    half: Callable[..., Source] = experiment_of(case).worker_half()
    return half(case, open_place(case, folder), worker, salt, shared)
