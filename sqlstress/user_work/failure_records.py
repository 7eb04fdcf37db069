"""Failed statements of a group of cases, read from the report, and the results of the user's checks.

A sighting is an observation in the report, such as a failed statement. A failure is a statement that failed
with a result code. A group has the runs that share a table.
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
    LOST_LOCKS,
    MOVED,
    MOVED_CODES,
)
from sqlstress.recording.failure_facts import code_of, facts_of
from sqlstress.report.results import Check, Sighting
from sqlstress.sqlite_codes import (
    CANTOPEN,
    LOCKED_SHAREDCACHE,
    name,
)
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
    """Number of calls in which the statement failed, and that then returned without a commit."""
    repeated: int
    """Number of calls in which the statement failed, and that then committed and returned."""
    timeout_ms: int | None
    held_since: str
    """Statement that began the transaction that held the write lock when this statement failed, or empty.

    It is known only if another connection of the same process held the lock and was idle.
    """
    reader: str = ""
    """Open query of the same process for which COMMIT waited; empty if no query was open."""
    scan: str = ""
    """Text on an earlier run of the statement that scanned a whole table slowly; empty without one."""
    lock_order: tuple[str, ...] = ()
    """Files that the transaction locked, in order. The last file is the one that it waited for."""
    earlier_query: str = ""
    """Query by which the call read the table before it began the failed write's transaction, or empty.

    The text contains the query's line of code.
    """
    library: str = ""
    """Library that ran the statement, such as "django"; empty if the user's code ran it directly."""
    open_blob: str = ""
    """Opening of a blob handle of the connection that was still open, with its line; or empty."""
    opposite: str = ""
    """Line of another failure whose transaction locked two files of `lock_order` in reverse order.

    Empty if there is no such failure.
    """


def failures_of(group: Group) -> list[Failure]:
    """Return the group's failures, merged by statement, line and result code, most frequent first."""
    merged: dict[tuple[object, ...], list[Failure]] = {}
    for sighting in sightings(group, FAILED_STATEMENT):
        failure = failure_of(sighting)
        merged.setdefault((failure.code, failure.sql, failure.at), []).append(failure)
    failures = with_shared_cache([*map(_merged, merged.values())])
    return sorted((with_opposite(failure, failures) for failure in failures), key=lambda f: -f.times)


def with_shared_cache(failures: list[Failure]) -> list[Failure]:
    """Return the failures. If a result code shows a shared cache, set `facts.shared_cache` in all of them.

    Python and apsw can make all connections share a cache. Only the result code shows this: the database's
    name need not contain "cache=shared".
    """
    if not any(failure.code == LOCKED_SHAREDCACHE for failure in failures):
        return failures
    return [failure._replace(facts=replace(failure.facts, shared_cache=True)) for failure in failures]


def with_opposite(failure: Failure, others: Sequence[Failure]) -> Failure:
    """Return the failure, with `opposite` set if one of `others` locked two files in reverse order."""
    pairs = {*combinations(failure.lock_order, 2)}
    for other in others:
        if pairs & {*combinations(reversed(other.lock_order), 2)}:
            facts = replace(failure.facts, other_file=True)
            return failure._replace(facts=facts, opposite=other.at or "another line")
    return failure


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
        traits.get("open_blob", ""),
    )


def _merged(failures: Sequence[Failure]) -> Failure:
    """Return the sum of a statement's failures, with the facts of the worker with the most failures."""
    largest = max(failures, key=lambda failure: failure.times)
    longest_ms = max(failure.longest_ms for failure in failures)
    for failure in failures:
        if failure.lock_order and not largest.lock_order:
            largest = largest._replace(facts=failure.facts, lock_order=failure.lock_order)
        largest = largest._replace(reader=largest.reader or failure.reader, scan=largest.scan or failure.scan)
    return largest._replace(
        times=sum(failure.times for failure in failures),
        longest_ms=longest_ms,
        given_up=sum(failure.given_up for failure in failures),
        repeated=sum(failure.repeated for failure in failures),
    )


def errors_after(group: Group, kind: str) -> list[str]:
    """Return the names of errors that follow from a cause of lost locks; empty if it was not observed.

    `kind` is MOVED (the file was moved, replaced or deleted while open) or CLOSED (code other than SQLite
    opened and closed a file of the database, which drops the locks of the process).
    """
    if not any(sighting.what == kind for sighting in sightings(group, LOST_LOCKS)):
        return []
    codes = MOVED_CODES if kind == MOVED else {*DAMAGE_CODES} - {CANTOPEN}
    return sorted({name(failure.code) for failure in failures_of(group) if failure.code & 0xFF in codes})


def user_checks(group: Group) -> Iterator[Check]:
    """Yield the results of the user's checks in all runs of a group."""
    return (check for run in group.runs for check in run.verdict.checks if check.name in (UNDER, AFTER))
