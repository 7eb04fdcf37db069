"""The published script that `--preset classic` repeats: pairs a second, on one file and on 20 files.

Source: three tables that its author printed with the script, one for each machine and layout. Each row is
one run, timed from the first process's start to the last one's end. The script as printed sets and gets
5,000 keys a process. The table of 20 files does not say so, but its seconds and totals fit 10,000 only.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.publications.surroundings import UNVERIFIED, machine
from sqlstress.plan import cases_of
from sqlstress.report import Environment, Report, Run, Trial, Warning
from sqlstress.report.case import Case

Table = tuple[tuple[float, float], ...]
"""Seconds and total TPS, as they were printed, at 1, 2, 3 … processes."""

MACOS_1_FILE: Table = (
    (0.65, 7638.43),
    (1.30, 7709.38),
    (1.83, 8187.97),
    (2.43, 8221.01),
    (3.07, 8146.74),
    (3.87, 7743.78),
    (4.80, 7292.13),
    (5.37, 7450.15),
)
MACOS_20_FILES: Table = (
    (2.07, 4837.17),
    (2.51, 7961.17),
    (3.28, 9143.03),
    (4.02, 9947.04),
    (4.44, 11249.71),
    (4.76, 12607.58),
    (5.25, 13325.82),
    (5.71, 14019.70),
)
WINDOWS_1_FILE: Table = (
    (4.12, 1212.14),
    (7.87, 1269.87),
    (14.06, 1066.69),
    (15.84, 1262.35),
    (20.19, 1238.41),
    (24.52, 1223.73),
    (29.94, 1169.12),
    (34.98, 1143.39),
)

_ON_MACOS = Warning(
    "durability-unknown",
    "What a commit waited for is not known. The script leaves synchronous to the library: with Apple's "
    "SQLite a commit in WAL mode then waits for no sync at all, with SQLite as published for an fsync, "
    "which on macOS leaves the data in the drive's cache.",
    serious=True,
)
_ON_WINDOWS = Warning(
    "durability-unknown",
    "What a commit waited for is not known. The script leaves synchronous to the library: with the "
    "SQLite of Python's own build for Windows that is FULL, and each commit waits until FlushFileBuffers "
    "has flushed the drive's cache.",
    serious=True,
)
_MACOS = machine("Darwin", 4, _ON_MACOS)
_WINDOWS = machine("Windows", 8, _ON_WINDOWS, release="Server 2012")
_AUTHOR = "by the author of the script that --preset classic repeats, "


def _report(where: str, environment: Environment, buckets: int, pairs: int, table: Table) -> Report:
    asked = {"preset": "classic", "concurrency": f"1-{len(table)}", "buckets": str(buckets)}
    cases = cases_of({**asked, "verify": "none", "seed": "0"})
    runs = tuple(
        _run(replace(case, ops=pairs), seconds, tps)
        for case, (seconds, tps) in zip(cases, table, strict=True)
    )
    return Report(
        created="",
        command=(),
        environment=environment,
        runs=runs,
        planned=len(runs),
        tool_version="",
        published=_AUTHOR + where,
    )


def _run(case: Case, seconds: float, tps: float) -> Run:
    pairs = (case.ops or 0) * case.concurrency
    trial = Trial(
        index=0,
        seconds=seconds,
        transactions=pairs,
        rows=2 * pairs,
        tps=tps,
        rows_per_s=2 * tps,
        fairness=None,
        min_max_share=None,
        longest_wait_ns=None,
        busy=None,
        busy_snapshot=None,
        failed=None,
        verdict=UNVERIFIED,
    )
    return Run(case, (trial,))


REPORTS = {
    "003-macos-1-file": _report("on a Mac of 4 cores with an SSD, one file", _MACOS, 1, 5_000, MACOS_1_FILE),
    "003-macos-20-files": _report(
        "on a Mac of 4 cores with an SSD, 20 files", _MACOS, 20, 10_000, MACOS_20_FILES
    ),
    "003-windows-1-file": _report(
        "on a cloud server of 8 cores with an SSD, one file", _WINDOWS, 1, 5_000, WINDOWS_1_FILE
    ),
}
