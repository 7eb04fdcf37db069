"""What is said of suspicions: as the cause beside wrong data, as what was found where no check was given."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.report.results import Sighting
from sqlstress.show.blocks import shortened
from sqlstress.user_work import AFTER, SUSPICION, UNDER, UNREHEARSED
from sqlstress.user_work.suspicions import DEFERRED, FORKED, MIXED, STALE, STALE_COPY

CODES = (STALE, STALE_COPY, MIXED, FORKED, DEFERRED)
_TOLD = ("transaction", "table", "first", "first_at", "then", "then_at")
_LONGEST = 120
MOST = 3
"""Suspicions that are told; the JSON report has them all."""


def suspected(group: Group) -> Iterator[Finding]:
    """Yield the suspicions of a group, each once; or why none were looked for."""
    every = (one for run in group.runs for trial in run.trials for one in trial.sightings)
    if without := next((one for one in every if one.topic == UNREHEARSED), None):
        yield Finding("not-rehearsed", why=without.what)
    found = [one for one in sighted(group).values() if one.what in CODES]
    checks = [check for run in group.runs for check in run.verdict.checks if check.name in (UNDER, AFTER)]
    failed = any(check.status == "failed" for check in checks)
    for one in found[:MOST]:
        traits = one.traits
        yield Finding(
            one.what,
            failed=failed,
            held=bool(checks) and not failed,
            **{name: shortened(traits.get(name, ""), _LONGEST) for name in _TOLD},
        )
    if len(found) > MOST:
        yield Finding("suspicions-more", count=len(found) - MOST)


def sighted(group: Group) -> dict[tuple[str, ...], Sighting]:
    """Return the first suspicion of each kind about each table: the trials have those of one rehearsal."""
    every = (one for run in group.runs for trial in run.trials for one in trial.sightings)
    found: dict[tuple[str, ...], Sighting] = {}
    for one in every:
        if one.topic == SUSPICION:
            found.setdefault((one.what, one.traits.get("transaction", ""), one.traits.get("table", "")), one)
    return found
