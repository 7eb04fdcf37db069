"""What the processes of a measurement import: whoever forks them has done it before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.targets import target_of

COMMON = ("sqlstress.engine.worker", "sqlstress.engine.companion")


def modules(cases: Iterable[Case]) -> list[str]:
    """Return the names of modules; one that is not installed may be among them."""
    return list(dict.fromkeys(name for case in cases for name in _of(case)))


def _of(case: Case) -> Iterator[str]:
    experiment = face_of(case)
    yield from COMMON
    yield from target_of(case.driver).preload(case.driver)
    for target in (experiment.worker, *experiment.companions.values()):
        yield target.partition(":")[0]
