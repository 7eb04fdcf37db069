"""Findings on suspicions, and on the step after which a check of the user fails.

A suspicion is a pair of statements that may be a race. If a check failed under load, it is the probable
cause. If sqlstress has also seen a check fail after a pause between the two statements, it is the cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, sightings
from sqlstress.analysis.sentences import TracedStep
from sqlstress.races.suspicions import (
    DEFERRED,
    FORKED,
    FROM_MEMORY,
    IF_FAILED,
    KEPT_ID,
    LOST_DATA,
    MIXED,
    NEEDLESS_LOCK,
    NO_RACE,
    NOTES_ONLY,
    OLD_VALUE,
)
from sqlstress.report.results import Sighting
from sqlstress.show.blocks import shortened
from sqlstress.user_work import ALONE, BETWEEN, HALF, IN_TURN, INTERLEAVING, NOT_REHEARSED, ORDERS, SUSPICION
from sqlstress.user_work.failure_records import user_checks
from sqlstress.user_work.failures_view import is_survived, refused_upgrades

CODES = (*LOST_DATA, MIXED, FORKED, DEFERRED, *IF_FAILED, NEEDLESS_LOCK, *NOTES_ONLY)
"""Kinds of suspicions (possible races) that the text report shows."""
_MAX_TRAIT_CHARS = 120
MAX_SUSPICIONS = 3
"""Maximum number of suspicions shown; the JSON report has all."""


def suspicion_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on the step after which a check fails, on suspicions, and on unexamined transactions."""
    suspicions, step = _suspicions_to_show(group), next(sightings(group, INTERLEAVING), None)
    # Transactions that share the code of a race share the race.
    seen = {_lines(suspicion) for suspicion in suspicions if step and _explains(suspicion, step)}
    if step and step.what in (HALF, BETWEEN) and not seen:
        yield _step_finding(step)
    yield from _unexamined(group)
    for suspicion in suspicions[:MAX_SUSPICIONS]:
        yield _suspicion_finding(group, suspicion, is_seen=_lines(suspicion) in seen, has_step=bool(step))
    if len(suspicions) > MAX_SUSPICIONS:
        yield Finding(sentences.more_in_json, count=len(suspicions) - MAX_SUSPICIONS, what="suspicion")


def lone_step_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on a step without overlap of calls, unless a suspicion explains it.

    It names only the statements, so findings on causes of such faults come first.
    """
    step = next(sightings(group, INTERLEAVING), None)
    if not step or step.what not in (ALONE, IN_TURN):
        return
    if not any(_explains(suspicion, step) for suspicion in _suspicions_to_show(group)):
        yield _step_finding(step)


def _unexamined(group: Group) -> Iterator[Finding]:
    """Yield findings on transactions that could not be examined for races."""
    unexamined: dict[str, dict[str, None]] = {}
    for sighting in sightings(group, NOT_REHEARSED):
        unexamined.setdefault(sighting.what, {})[sighting.traits.get("transaction", "")] = None
    for reason, transactions in unexamined.items():
        yield Finding(sentences.not_rehearsed, why=reason, transactions=[*filter(None, transactions)])


def _suspicions_to_show(group: Group) -> Sequence[Sighting]:
    """Return the suspicions that the report shows, those that can lose data first."""
    refused = refused_upgrades(group)
    failed = any(check.status == "failed" for check in user_checks(group))
    failed |= any(True for _ in sightings(group, INTERLEAVING))
    suspicions = [
        suspicion
        for suspicion in first_suspicions(group).values()
        if suspicion.what in CODES
        and (failed or suspicion.what not in IF_FAILED)
        and not (suspicion.what == DEFERRED and suspicion.traits.get("then_at") in refused)
    ]
    return sorted(suspicions, key=lambda suspicion: suspicion.what in (NEEDLESS_LOCK, *NOTES_ONLY))


def _explains(suspicion: Sighting, step: Sighting) -> bool:
    """Return whether a suspicion explains the step after which a check fails."""
    kind = suspicion.what
    if kind == KEPT_ID and step.what in (ALONE, IN_TURN):
        # The check may fail after a call of another transaction, which inserts a row that gets the old id.
        table = suspicion.traits["table"]
        return table in step.traits["first"] or table in step.traits["then"]
    if step.traits["transaction"] != suspicion.traits.get("transaction"):
        return False
    if step.what in (ALONE, IN_TURN):
        kept = step.what == IN_TURN and kind in (FROM_MEMORY, OLD_VALUE)
        return kept or kind in (*NO_RACE, MIXED)
    return step.what == BETWEEN and kind in LOST_DATA and _encloses(suspicion, step)


def _encloses(suspicion: Sighting, step: Sighting) -> bool:
    """Return whether the pause after which a check fails is between the two statements of a suspicion."""
    (first, then), (before, after) = _lines(suspicion), _lines(step)
    files = {at.partition(":")[0] for at in (first, then, before, after)}
    if len(files) == 1 and _number(first) <= _number(before) and _number(after) <= _number(then):
        return True
    return first == before or then == after


def _number(at: str) -> int:
    number = at.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _step_finding(step: Sighting) -> Finding:
    first, then = _step(step, "first"), _step(step, "then")
    return Finding(
        sentences.breaking_step,
        kind=step.what,
        transaction=_trait(step, "transaction"),
        check=_trait(step, "check"),
        others=_trait(step, "others"),
        first=first if first.statement else None,
        then=then if then.statement else None,
        committed_at=_trait(step, "committed_at"),
    )


def _suspicion_finding(group: Group, suspicion: Sighting, *, is_seen: bool, has_step: bool) -> Finding:
    """Return the finding on a suspicion.

    `is_seen` is whether a check was seen to fail because of it. `has_step` is whether the search for the
    step after which a check fails has found any step.
    """
    checks = [*user_checks(group)]
    failed = any(check.status == "failed" for check in checks)
    transaction = _trait(suspicion, "transaction")
    first, then = _step(suspicion, "first"), _step(suspicion, "then")
    if suspicion.what == DEFERRED:
        repeated = is_survived(group, then.at)
        return Finding(sentences.deferred_upgrade, first=first, then=then, repeated=repeated)
    if ORDERS in suspicion.traits and not (failed or is_seen):
        orders = int(suspicion.traits[ORDERS])
        return Finding(
            sentences.unbroken_suspicion, transaction=transaction, first=first, then=then, orders=orders
        )
    return Finding(
        sentences.suspicion,
        kind=suspicion.what,
        transaction=transaction,
        table=_trait(suspicion, "table"),
        effect=_trait(suspicion, "effect"),
        late=_trait(suspicion, "late") == "yes",
        kept=_trait(suspicion, "kept"),
        ignored_lock=_trait(suspicion, "ignored_lock"),
        first=first,
        then=then,
        failed=failed and not has_step,
        held=bool(checks) and not failed,
        seen=is_seen,
    )


def _lines(suspicion: Sighting) -> tuple[str, str]:
    return _trait(suspicion, "first_at"), _trait(suspicion, "then_at")


def _step(suspicion: Sighting, name: str) -> TracedStep:
    return TracedStep(_trait(suspicion, name), _trait(suspicion, f"{name}_at"))


def _trait(suspicion: Sighting, name: str) -> str:
    return shortened(suspicion.traits.get(name, ""), _MAX_TRAIT_CHARS)


def first_suspicions(group: Group) -> dict[tuple[str, ...], Sighting]:
    """Return the first suspicion (possible race) for each kind, transaction and table.

    Later suspicions repeat the first: a case is rehearsed once, and each of its trials reports the result.
    """
    suspicions: dict[tuple[str, ...], Sighting] = {}
    for suspicion in sightings(group, SUSPICION):
        suspicions.setdefault(
            (suspicion.what, suspicion.traits.get("transaction", ""), suspicion.traits.get("table", "")),
            suspicion,
        )
    return suspicions
