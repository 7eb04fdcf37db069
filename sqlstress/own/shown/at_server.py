"""What others in the way did to the user's transactions at a server: refusals, and uneven shares."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.waits import fewer_processes, starvation, tally
from sqlstress.analysis.wording import percent, place, places, whole
from sqlstress.report import Run
from sqlstress.report.server import ISOLATIONS


def at_server(group: Group) -> Iterator[Finding]:
    """Yield what others in the way did to the runs of a group."""
    yield from too_weak(group)
    yield from _given_up(group)
    yield from _refused(group)
    yield from starvation(group, fewer_processes)


def too_weak(group: Group) -> Iterator[Finding]:
    """Say of checks that failed at the weakest level what that level lets happen."""
    if any(_fails(run) and _is_weakest(run) for run in group.runs):
        yield Finding(
            "read-committed",
            "At read committed, who reads a row and then writes it overwrites what others wrote in between: "
            "SELECT ... FOR UPDATE waits for them, --isolation repeatable-read or serializable refuses.",
        )


def _is_weakest(run: Run) -> bool:
    """Return whether transactions ran at the weakest level: what was read back says so, or what was asked."""
    if not run.case.server:
        return False
    levels = [level for one in run.trials if (level := one.effective.get("transaction_isolation"))]
    return any(ISOLATIONS[0] in level.replace(" ", "-") for level in levels or [run.case.server.isolation])


def _fails(run: Run) -> bool:
    return any(check.name.startswith("checks ") and check.status == "failed" for check in run.verdict.checks)


def _given_up(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.failed)
    if number:
        most = max(group.runs, key=Run.failed_share)
        share = percent(most.failed_share())
        yield Finding(
            "given-up",
            f"Transactions given up: {whole(number)}, at {places(cases)}; up to {share} of all (at "
            f"{place(most.case)}). The server refused them for what others did meanwhile. They "
            "count in no figure: an application has to begin them again (--max-tries).",
        )


def _refused(group: Group) -> Iterator[Finding]:
    refused, where = tally(group, lambda trial: trial.busy_snapshot)
    locked, also = tally(group, lambda trial: trial.busy)
    if refused or locked:
        yield Finding(
            "refused",
            f"Refused by the server, at {places([*where, *also])}: {whole(refused)} by a serialization "
            f"failure, {whole(locked)} by a deadlock or a lock that stayed taken.",
        )
