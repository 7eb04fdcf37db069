"""The text that `sqlstress keys` repeats: time and size of tables whose rows ULIDs or UUIDs identify.

The figures are those of `sqlstress.experiments.keys.key_findings`. Here stand the cases of which a time
was printed, or told to be the same as one that was. What the text tells as a rough share of another figure
("nearly 20% longer"), and shares and fan-outs of indices whose pages were not printed, fit no report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.publications.surroundings import UNVERIFIED, machine
from sqlstress.experiments.keys.key_findings import FOUR_TIMES, ONCE, PUBLISHED, ROWS, SOURCE
from sqlstress.plan import cases_of
from sqlstress.report import Report, Run, Space, Trial, Warning
from sqlstress.report.case import UNKNOWN_DRIVER, Case

Load = tuple[int, int]
"""Users, and picks of each."""
Place = tuple[str, str]
"""Schema and type of the ids."""
_THE_SAME = 1.0

_UNKNOWN = (
    Warning(
        "durability-unknown",
        "What its commits waited for is not known. The text tells of WAL and of the setting that is "
        "recommended for it, which is NORMAL: then no commit waits for a sync.",
        serious=True,
    ),
    Warning("processes-unknown", "How many processes or threads wrote is not known.", serious=True),
)


def _report() -> Report:
    runs = tuple(run for load in (ONCE, FOUR_TIMES) for run in _runs(load))
    return Report(
        created="",
        command=(),
        environment=machine("", None, *_UNKNOWN),
        runs=runs,
        planned=len(runs),
        tool_version="",
        published=f'by the author of "{SOURCE}", by a program in Rust',
    )


def _runs(load: Load) -> Iterator[Run]:
    """Yield the cases of a load of which the time is known, each as its author measured it."""
    users, picks = map(str, load)
    asked = {"full": "on", "id-type": "uuid4,ulid", "users": users, "picks": picks, "concurrency": "1"}
    for case in cases_of({**asked, "repeat": "1", "verify": "none", "seed": "0"}, "keys"):
        place = (case.spec.schema, case.spec.id_type)
        seconds, size = (_figure(name, place, load) for name in ("time", "file"))
        if seconds:
            yield _run(replace(case, concurrency=0, driver=UNKNOWN_DRIVER), load, seconds, size)


def _figure(name: str, place: Place, load: Load) -> float | None:
    """Return what was printed of a case, in seconds or bytes, or of the one that it was told to equal."""
    known = [one for one in PUBLISHED if (one.figure, one.load) == (name, load)]
    printed = {(one.schema, one.id_type): one.value for one in known if one.beside is None}
    for one in known:
        if one.beside and one.value == _THE_SAME:
            own = (one.schema, one.id_type)
            for this, other in ((own, one.beside), (one.beside, own)):
                if other in printed:
                    printed.setdefault(this, printed[other])
    return printed.get(place)


def _run(case: Case, load: Load, seconds: float, size: float | None) -> Run:
    trial = Trial(
        index=0,
        seconds=seconds,
        transactions=load[0],
        rows=ROWS[load],
        tps=load[0] / seconds,
        rows_per_s=ROWS[load] / seconds,
        fairness=None,
        min_max_share=None,
        longest_wait_ns=None,
        busy=None,
        busy_snapshot=None,
        failed=None,
        verdict=UNVERIFIED,
        space=Space(round(size), None, None, None, ()) if size else None,
    )
    return Run(case, (trial,))


REPORTS = {"002-keys": _report()}
