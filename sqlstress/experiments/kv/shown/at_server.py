"""What waiting did at a server: transactions that it refused, operations given up, uneven shares."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.waits import fewer_processes, starvation, tally
from sqlstress.analysis.wording import places, whole
from sqlstress.report import Check
from sqlstress.report.server import ISOLATIONS
from sqlstress.statistics.units import format_duration


def at_server(group: Group) -> Iterator[Finding]:
    """Yield what waiting did to the runs of a group."""
    yield from _lost(group)
    yield from _given_up(group)
    if group.case.arrivals is None:
        yield from starvation(group, fewer_processes)
    yield from _begun_again(group)


def _lost(group: Group) -> Iterator[Finding]:
    lost = [run.case for run in group.runs if any(map(_is_lost, run.verdict.checks))]
    unlocked = [case for case in lost if case.server and case.spec.begin == "deferred"]
    if any(case.server and case.server.isolation == ISOLATIONS[0] for case in unlocked):
        yield Finding(
            "lost-updates",
            "At read committed, who reads a row and then writes it overwrites what others wrote in between: "
            "SELECT ... FOR UPDATE (--begin immediate) waits for them, --isolation repeatable-read refuses.",
        )


def _is_lost(check: Check) -> bool:
    return check.name == "lost updates" and check.status == "failed"


def _given_up(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.failed)
    if number:
        timeout = format_duration(group.case.settings.busy_timeout_ms / 1000)
        yield Finding(
            "given-up",
            f"Operations given up after {timeout}: {whole(number)}, at {places(cases)}. They count in no "
            "figure: try a longer --busy-timeout or fewer processes.",
        )


def _begun_again(group: Group) -> Iterator[Finding]:
    refused, where = tally(group, lambda trial: trial.busy_snapshot)
    locked, also = tally(group, lambda trial: trial.busy)
    if refused or locked:
        yield Finding(
            "begun-again",
            f"Transactions begun again, at {places([*where, *also])}: {whole(refused)} after a serialization "
            f"failure, {whole(locked)} after a deadlock or a lock that stayed taken. An application has to "
            "begin them again itself.",
        )
