"""Report of `app --start`: a row per state of the database's files, and causes of failed openings.

An opening is a call of the user's @connect.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.advice import figure_limits
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic, longest_wait_ns
from sqlstress.experiments.app import SCHEMA_CHECK
from sqlstress.experiments.app.migrations import migration_race
from sqlstress.report import Run
from sqlstress.show.blocks import Column, ms_cell
from sqlstress.show.case_table import FAILED_SHARE, PROCESSES, Row, setting_columns
from sqlstress.statistics.units import digits
from sqlstress.user_work.call_findings import lock_losses, open_findings
from sqlstress.user_work.failures_view import failure_findings

ALONE_BEFORE = (
    "In situations with a file, connect has run once alone before, so these test no upgrade of the file that "
    "@setup left. Runs without --start do."
)


def columns(group: Group) -> tuple[Column[Row], ...]:
    """Return the columns of the table of `app --start`. It has a row per state of the database's files."""
    return (
        *setting_columns(group),
        PROCESSES,
        Column("openings", ("", "openings"), cell=lambda row: digits(_done(row.run) + _failed(row.run))),
        Column("failed", ("", "failed"), cell=lambda row: digits(_failed(row.run))),
        FAILED_SHARE.explained(["failed: @connect raised an exception"]),
        Column(
            "slowest ms",
            cell=lambda row: ms_cell(longest_wait_ns(row.run)),
            meaning="slowest: the longest call of @connect",
        ),
    )


def _done(run: Run) -> int:
    return sum(sum(worker.operations.values()) for trial in run.valid for worker in trial.workers)


def _failed(run: Run) -> int:
    return sum(trial.failed or 0 for trial in run.valid)


def migration_cause(group: Group) -> str | None:
    """Return cause and remedy of a race of schema migrations; None if no run shows such a race.

    In such a run, some calls of @connect succeed, and others fail because the table or column to be added
    already exists.
    """
    checks = [
        sighting.what
        for run in group.runs
        if _done(run) and _failed(run)
        for trial in run.trials
        for sighting in trial.sightings
        if sighting.topic == SCHEMA_CHECK
    ]
    return migration_race(checks[0]) if checks else None


def findings(group: Group, further: tuple[Topic, ...]) -> Iterator[Finding]:
    """Yield findings on failed calls of @connect, then those of the functions `further`."""
    for topic in (lock_losses, open_findings, failure_findings, *further, figure_limits):
        yield from topic(group)
