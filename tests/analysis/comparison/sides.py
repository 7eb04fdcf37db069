"""Hand-made reports to compare; each differs from the example in the subject of its test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlstress.analysis.comparison import ComparedTable, Comparison, compare
from sqlstress.report import Report, Run, SqliteBuild, SyncCost
from sqlstress.report.case import Case
from tests.analysis.hand_made import EXAMPLE, run, trial

LINUX = SyncCost("fdatasync", 96_000, 410_000, 81_000, 350_000, 200)
WINDOWS = replace(LINUX, primitive="FlushFileBuffers")
MACOS = replace(LINUX, primitive="fsync")
MACOS_FULL = replace(LINUX, primitive="F_FULLFSYNC")


def report(*runs: Run, **surroundings: Any) -> Report:
    """Return a report of these runs; `surroundings` replace fields of the example's environment."""
    environment = replace(EXAMPLE.environment, **surroundings)
    return replace(EXAMPLE, runs=runs, planned=len(runs), environment=environment)


def sweep(*totals: float, files: int = 1, case: Case | None = None, **fields: Any) -> list[Run]:
    """Return runs with these TPS at 1, 2, 3 … processes; `fields` are fields of their trials."""
    return [run(files, n, trial(tps, **fields), case=case) for n, tps in enumerate(totals, 1)]


def several(rates: Sequence[Sequence[float]], files: int = 1, **fields: Any) -> list[Run]:
    """Return runs with 1, 2, 3 … processes, with a trial for each TPS; `fields` are fields of the trials."""
    return [
        run(files, n, *(trial(tps, **fields) for tps in trial_rates))
        for n, trial_rates in enumerate(rates, 1)
    ]


def settings_read_back(**effective: str) -> dict[str, str]:
    """Return settings as read back from SQLite: WAL and FULL, with these changes."""
    return {"journal_mode": "wal", "synchronous": "full", "fullfsync": "0", "page_size": "4096", **effective}


def library(**fields: Any) -> tuple[SqliteBuild, ...]:
    """Return the example's only library with these fields changed."""
    return (replace(EXAMPLE.environment.builds[0], **fields),)


def comparison(*reports: Report, anyway: bool = False) -> Comparison:
    """Return the comparison of these reports."""
    return compare([(f"report {n}", single_report) for n, single_report in enumerate(reports)], anyway)


def side_by_side(*reports: Report, anyway: bool = False) -> ComparedTable:
    """Return the only table that the reports have in common."""
    (compared,) = comparison(*reports, anyway=anyway).tables
    return compared


def values(compared: ComparedTable) -> dict[str, tuple[str | None, ...]]:
    """Return {subject of a difference: its value in each report}."""
    return {difference.subject: difference.values for difference in compared.differences}
