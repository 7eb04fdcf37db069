"""Failed statements of a group of runs, read from the report, and the results of the user's checks.

A sighting is an observation in the report, such as a failed statement. A failure is a statement that failed
with a result code. A group is the set of runs that the report shows in a single table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from sqlstress.analysis.causes import Facts
from sqlstress.analysis.group import Group, sightings
from sqlstress.recording import (
    DAMAGE_CODES,
    FAILED_STATEMENT,
    LOCK_ORDER,
    LOST_LOCKS,
    MOVED,
    MOVED_CODES,
    THIS_THREAD,
)
from sqlstress.recording.failure_facts import code_of, facts_of
from sqlstress.report.results import Check, Sighting
from sqlstress.sqlite_codes import CANTOPEN, LOCKED_SHAREDCACHE, name
from sqlstress.user_work import AFTER, UNDER

MAX_CAUSES = 3
"""Maximum number of findings of each kind, for example of causes of failed statements."""
HELD_LONGER = "held-longer"
"""Name of the cause of failures that waited for a lock until the timeout."""


class Failure(NamedTuple):
    """Failures of one statement with one result code, summed over trials and workers."""

    code: int
    sql: str
    at: str
    message: str
    facts: Facts
    times: int
    waited_ms: float
    """Median time until the statement failed, in ms, in the worker with the most failures."""
    longest_ms: float
    """Maximum time until the statement failed, in ms, in all workers."""
    given_up: int
    """Number of calls that returned without a commit after the statement had failed."""
    repeated: int
    """Number of calls that committed and returned after the statement had failed."""
    timeout_ms: int | None
    held_since: str
    """Statement by which the holder of the write lock began its transaction; empty if unknown.

    The holder is known only if another, idle connection of the same process held the lock at the failure.
    """
    reader: str = ""
    """Open query of the same process for which COMMIT waited; empty if no query was open."""
    scan: str = ""
    """Table scan of an earlier, slow run of the statement, such as "SCAN t, 20 ms"; or empty."""
    lock_order: tuple[str, ...] = ()
    """Files that the transaction locked, in order, and last the file for whose lock it waited."""
    earlier_query: str = ""
    """Query of the call that read the failed write's table before the write's transaction; or empty.

    The text contains the query's line of code.
    """
    library: str = ""
    """Library that ran the statement, such as "django"; empty if the user's code ran it directly."""
    busy_handler: str = ""
    """Line that set a busy handler, which has replaced the busy timeout; or empty."""
    open_blob: str = ""
    """Opening of a blob handle of the connection that was still open, with its line; or empty."""
    given_up_by: tuple[str, ...] = ()
    """User's functions whose calls returned without a commit after the statement had failed."""
    opposite: str = ""
    """Line of another failure that locked two of the files in `lock_order` the other way round.

    Empty if there is no such failure.
    """
    is_own_thread: bool = False
    """Whether the statement, at least once, waited for another connection of its own thread."""
    orders: str = ""
    """Text on two calls that lock two files in opposite orders; empty if this did not cause the failure.

    For example "audit locks a.db (bank.py:27), then b.db, and transfer locks b.db, then a.db (bank.py:9)".
    """


def failures_of(group: Group) -> list[Failure]:
    """Return the group's failures, merged by statement, line and result code, most frequent first."""
    similar: dict[tuple[object, ...], list[Failure]] = {}
    for sighting in sightings(group, FAILED_STATEMENT):
        failure = failure_of(sighting)
        similar.setdefault((failure.code, failure.sql, failure.at), []).append(failure)
    failures = with_shared_cache([*map(merged, similar.values())])
    orders = [*sightings(group, LOCK_ORDER)]
    failures = [with_orders(with_opposite(failure, failures), orders) for failure in failures]
    return sorted(failures, key=lambda failure: -failure.times)


def with_shared_cache(failures: list[Failure]) -> list[Failure]:
    """Return the failures. If a result code shows a shared cache, set `facts.shared_cache` in all of them.

    Python and apsw can make all connections share a cache. Only the result code shows this: the database's
    name need not contain "cache=shared".
    """
    if not any(failure.code == LOCKED_SHAREDCACHE for failure in failures):
        return failures
    return [failure._replace(facts=replace(failure.facts, shared_cache=True)) for failure in failures]


def with_opposite(failure: Failure, others: Sequence[Failure]) -> Failure:
    """Return the failure. If one of `others` locked two of its files in reverse order, set `opposite`.

    Two such transactions can wait for each other, each with one of the files locked.
    """
    pairs = {*combinations(failure.lock_order, 2)}
    for other in others:
        if pairs & {*combinations(reversed(other.lock_order), 2)}:
            facts = replace(failure.facts, other_file=True)
            return failure._replace(facts=facts, opposite=other.at or "another line")
    return failure


def with_orders(failure: Failure, orders: Sequence[Sighting]) -> Failure:
    """Return the failure. If its call and another call lock two files in opposite orders, set `orders`.

    For example, the failed call had locked a.db and waited for b.db, and another call had locked b.db and
    waited for a.db. The argument `orders` has the observations (LOCK_ORDER) of all calls that waited.
    """
    for order in orders:
        if (order.traits["statement"], order.traits["at"]) != (failure.sql, failure.at):
            continue
        files = order.traits["first"], order.traits["then"]
        for other in sorted(orders, key=lambda other: not other.traits["statement"]):
            if (other.traits["then"], other.traits["first"]) == files:
                text = ", and ".join(sorted((_order_text(order), _order_text(other))))
                return failure._replace(facts=replace(failure.facts, other_file=True), orders=text)
    return failure


def _order_text(order: Sighting) -> str:
    traits = order.traits
    # If a helper such as `begin(file)` took both locks, they have the same line. Show it for the second only.
    is_shown = traits["first_at"] and traits["first_at"] != (traits["at"] or traits["then_at"])
    began = f" ({traits['first_at']})" if is_shown else ""
    then_at = f" ({traits['then_at']})" if traits["then_at"] else ""
    return f"{order.what} locks {traits['first']}{began}, then {traits['then']}{then_at}"


def failure_of(sighting: Sighting) -> Failure:
    """Return a worker's observation of a failed statement (FAILED_STATEMENT) as a Failure."""
    traits = sighting.traits
    waited_ms, longest_ms = (float(traits[key]) for key in ("waited_ms", "longest_ms"))
    timeout_ms = int(traits["timeout_ms"]) if traits["timeout_ms"].isdecimal() else None
    facts = facts_of(traits, waited_ms, timeout_ms)
    at, message = traits["at"], sighting.example
    code = code_of(int(traits["code"]), message)
    order = traits.get("lock_order", "")
    return Failure(
        code,
        sighting.what,
        at,
        message,
        facts,
        sighting.count,
        waited_ms,
        longest_ms,
        int(traits.get("given_up", 0)),
        int(traits.get("repeated_calls", 0)),
        timeout_ms,
        traits.get("held_since", ""),
        traits.get("reader", ""),
        traits.get("scan", ""),
        tuple(order.split(", ")) if order else (),
        traits.get("earlier_query", ""),
        traits.get("library", ""),
        traits.get("busy_handler", ""),
        traits.get("open_blob", ""),
        given_up_by=tuple(filter(None, traits.get("given_up_by", "").split(", "))),
        is_own_thread=traits["holder"] == THIS_THREAD,
    )


def merged(failures: Sequence[Failure]) -> Failure:
    """Return a single record of the failures of a statement in several workers, with their sums."""
    # Facts that cannot be summed are those of the worker with the most failures.
    largest = max(failures, key=lambda failure: failure.times)
    longest_ms = max(failure.longest_ms for failure in failures)
    for failure in failures:
        if failure.lock_order and not largest.lock_order:
            largest = largest._replace(facts=failure.facts, lock_order=failure.lock_order)
        if failure.is_own_thread and not largest.is_own_thread:
            facts = replace(largest.facts, holder="this process")
            largest = largest._replace(facts=facts, held_since=failure.held_since, is_own_thread=True)
        largest = largest._replace(reader=largest.reader or failure.reader, scan=largest.scan or failure.scan)
    return largest._replace(
        times=sum(failure.times for failure in failures),
        longest_ms=longest_ms,
        given_up=sum(failure.given_up for failure in failures),
        given_up_by=tuple(dict.fromkeys(call for failure in failures for call in failure.given_up_by)),
        repeated=sum(failure.repeated for failure in failures),
    )


def errors_after(group: Group, kind: str) -> list[str]:
    """Return the errors of the group, such as "SQLITE_CORRUPT", that a loss of locks may have caused.

    `kind` is the cause of the loss: MOVED (the file was moved, replaced or deleted while open) or CLOSED
    (code other than SQLite opened and closed a file of the database, which drops the locks of the process).
    The result is empty if this cause was not observed.
    """
    if not any(sighting.what == kind for sighting in sightings(group, LOST_LOCKS)):
        return []
    codes = MOVED_CODES if kind == MOVED else {*DAMAGE_CODES} - {CANTOPEN}
    return sorted({name(failure.code) for failure in failures_of(group) if failure.code & 0xFF in codes})


def user_checks(group: Group) -> Iterator[Check]:
    """Yield the results of the user's checks in all runs of a group."""
    return (check for run in group.runs for check in run.verdict.checks if check.name in (UNDER, AFTER))
