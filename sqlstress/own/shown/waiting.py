"""What waiting for the lock did: starvation, transactions given up, transactions begun again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.waits import starvation, tally
from sqlstress.analysis.wording import listing, percent, place, places, whole
from sqlstress.own.shown.at_server import at_server
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.statistics.units import format_duration


def waiting(group: Group) -> Iterator[Finding]:
    """Yield what waiting did to the runs of a group."""
    if group.case.server:
        yield from at_server(group)
        return
    yield from _given_up(group)
    yield from _snapshots(group)
    yield from starvation(group, lambda cases: _remedy(group, cases))


def _remedy(group: Group, cases: Sequence[Case]) -> str:
    fair = [] if group.case.settings.busy == "fair" else ["--busy fair"]
    return f"Try {listing([*fair, 'shorter transactions', 'fewer processes'], 'or')}."


def _given_up(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.failed)
    if not number:
        return
    most = max(group.runs, key=Run.failed_share)
    timeout = format_duration(group.case.settings.busy_timeout_ms / 1000)
    yield Finding(
        "given-up",
        f"Transactions given up: {whole(number)}, at {places(cases)}; up to {percent(most.failed_share())} "
        f"of all (at {place(most.case)}). SQLite answered BUSY, at once or after the time-out of {timeout}: "
        'an application sees "database is locked". They count in no figure.',
    )


def _snapshots(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.busy_snapshot)
    if number:
        yield Finding(
            "busy-snapshot",
            f"BUSY_SNAPSHOT: {whole(number)}, at {places(cases)}. A transaction that has read can't wait for "
            "its turn to write: begin it with BEGIN IMMEDIATE, or begin it again as a whole.",
        )
