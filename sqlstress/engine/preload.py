"""What the processes of a measurement import: whoever forks them has done it before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.targets import target_of

COMMON = (
    "sqlstress.engine.worker",
    "sqlstress.engine.companion",
    "sqlstress.system.sharing",
    "sqlstress.targets.seal",
)


def modules(cases: Iterable[Case]) -> list[str]:
    """Return the names of modules; one that is not installed may be among them.

    There are none where all processes are spawned: those of the published script, whose start is in its time.
    """
    forked = (case for case in cases if not face_of(case).whole_script)
    return list(dict.fromkeys(name for case in forked for name in _of(case)))


def _of(case: Case) -> Iterator[str]:
    experiment = face_of(case)
    yield from COMMON
    yield from target_of(case.driver).preload(case.driver)
    yield from experiment.imports(case)
    for target in (experiment.worker, *experiment.companions.values()):
        yield target.partition(":")[0]
