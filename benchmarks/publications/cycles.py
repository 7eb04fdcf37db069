"""The text that `sqlstress cycles` repeats: the total time of a hundred cycles under five settings.

Its transactions held the whole run: see docs/cycles.md.
The sums of the cycles, the first cycle and the spikes, which it tells too, fit no report: that has the time
of every cycle, and those stand in charts only. docs/cycles.md has them.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.publications.surroundings import UNVERIFIED, machine
from sqlstress.experiments.cycles.experiment import setting_of
from sqlstress.plan import cases_of
from sqlstress.report import Report, Run, Trial, Warning
from sqlstress.report.case import UNKNOWN_DRIVER, Case

SOURCE = '"Optimizing SQLite on Raspberry Pi" (2013)'
TOTALS = {"delete-tx": 3.53, "wal": 7.19, "wal-tx": 2.29, "wal-tx-off": 2.286}
"""Setting → seconds, as they were printed; of the last one that it took 0.004 s less."""
STOPPED = "stopped by its author: each cycle took about 30 s"

_UNKNOWN = Warning(
    "durability-unknown",
    "What its commits waited for is not known: the text leaves synchronous to the library, whose default "
    "is FULL as published.",
    serious=True,
)


def _report() -> Report:
    cases = cases_of({"repeat": "1", "verify": "none", "seed": "0"}, "cycles")
    runs = tuple(_run(_as_published(case)) for case in cases)
    return Report(
        created="",
        command=(),
        environment=machine("", None, _UNKNOWN),
        runs=runs,
        planned=len(runs),
        tool_version="",
        published=f"by the author of {SOURCE}, on one of 700 MHz with an SD card",
    )


def _as_published(case: Case) -> Case:
    settings = replace(case.settings, synchronous=None)
    cycling = replace(case.spec, timeout_s=None)
    return replace(case, driver=UNKNOWN_DRIVER, settings=settings, spec=cycling)


def _run(case: Case) -> Run:
    seconds = TOTALS.get(setting_of(case))
    if seconds is None:
        return Run(case, error=STOPPED)
    inserted = 2 * case.spec.rows * case.spec.cycles
    deleted = inserted - case.spec.rows
    statements = (2 * case.spec.rows + 1) * case.spec.cycles
    trial = Trial(
        index=0,
        seconds=seconds,
        transactions=statements,
        rows=inserted + deleted,
        tps=statements / seconds,
        rows_per_s=(inserted + deleted) / seconds,
        fairness=None,
        min_max_share=None,
        longest_wait_ns=None,
        busy=None,
        busy_snapshot=None,
        failed=None,
        verdict=UNVERIFIED,
    )
    return Run(case, (trial,))


REPORTS = {"004-cycles": _report()}
