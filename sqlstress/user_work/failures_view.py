"""Report on failed statements of the user's code: a table, and the causes and cures of the most frequent.

A sighting is an observation in the report, such as a failed statement. A failure is a statement that failed
with a result code. Rules in `analysis.causes` find the cause from the failure's facts, and name it, as in
"stale-snapshot". A group is the set of runs that the report shows in a single table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from typing import Any

from sqlstress.analysis import failed, sentences
from sqlstress.analysis.causes import Diagnosis, diagnose
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, sightings
from sqlstress.races.suspicions import DEFERRED
from sqlstress.recording import (
    CHECKPOINT,
    CLOSED,
    LEFT_OPEN,
    MOVED,
    OPEN_STATEMENT,
    OVERLAP,
    REPEATED,
    SLOW_READ,
    SPLIT,
    UNCLOSED,
    UNFETCHED,
    is_passive,
)
from sqlstress.show.blocks import NAME, Block, Column, Legend, Note, ms_cell, shortened, table_of
from sqlstress.sqlite_codes import BUSY, CANTOPEN, CONSTRAINT, ERROR, name
from sqlstress.statistics.units import NS_PER_S, digits, plural
from sqlstress.user_work import SUSPICION
from sqlstress.user_work.call_findings import own_hold_findings
from sqlstress.user_work.failure_records import (
    HELD_LONGER,
    MAX_CAUSES,
    Failure,
    errors_after,
    failures_of,
    user_checks,
)

MAX_ROWS = 5
"""Maximum number of table rows; the JSON report has all failed statements."""
_SAME_CURE = {"stale-snapshot": "read-before-write"}
"""Causes that are reported as part of another cause, because the cure is the same."""
_NEXT_NUMBER = re.compile(r"\b(max|count)\s*\(|\border\s+by\b.*\bdesc\b", re.IGNORECASE)
"""Pattern of queries for the largest number or the count, from which programs make a new key."""
NS_PER_MS = NS_PER_S // 1000
LOCK_ORDER, WAITS_FOR_ITSELF, BUSY_HANDLER = "lock-order", "waits-for-itself", "busy-handler"
COMMIT_BEHIND_READER, DUPLICATE_KEY, OPEN_BLOB = "commit-behind-reader", "duplicate-key", "open-blob"
_UPGRADES = ("read-before-write", "stale-snapshot", "repeated-statement", "left-open-reads")
"""Causes why SQLite refuses the write lock to a transaction that has already read."""
_BEGIN_IMMEDIATE = {
    "django": ' In Django 5.1: "OPTIONS": {"transaction_mode": "IMMEDIATE"}.',
    "peewee": ' In Peewee: db.atomic("IMMEDIATE").',
    "sqlalchemy": ' In SQLAlchemy: isolation_level=None, and an event "begin" with BEGIN IMMEDIATE.',
}
"""Sentences on the use of BEGIN IMMEDIATE, by library."""


def failure_blocks(group: Group, *, with_warmup: bool = False) -> Iterator[Block]:
    """Yield the table of failed statements; nothing if no statement failed.

    `with_warmup` is whether the counts include failures in the warm-up.
    """
    failures = failures_of(group)
    if not failures:
        return
    table = table_of(failures[:MAX_ROWS], [*_COLUMNS[:3], _times(with_warmup=with_warmup), *_COLUMNS[3:]])
    yield table
    yield Legend(table)
    if len(failures) > MAX_ROWS:
        more = plural(len(failures) - MAX_ROWS, "more kind")
        yield Note(f"{more} of failed statements are in the JSON report.")


def _timeout(failure: Failure) -> str | None:
    return None if failure.timeout_ms is None else digits(failure.timeout_ms)


def _ms(value: Callable[[Failure], float]) -> Callable[[Failure], str | None]:
    return lambda failure: ms_cell(round(value(failure) * NS_PER_MS))


def _times(*, with_warmup: bool) -> Column[Failure]:
    counted = "times: also in the warm-up; " if with_warmup else ""
    return Column(
        "times",
        ("", "times"),
        cell=lambda failure: digits(failure.times),
        meaning=f"{counted}median and longest: time of the failed calls",
    )


_COLUMNS: tuple[Column[Failure], ...] = (
    Column(
        "failed statement", ("", "failed statement"), "left", NAME, lambda failure: shortened(failure.sql, 30)
    ),
    Column("line", ("", "line"), "left", NAME, lambda failure: failure.at or None),
    Column("error", ("", "error"), "left", NAME, lambda failure: name(failure.code).removeprefix("SQLITE_")),
    Column("median ms", cell=_ms(lambda failure: failure.waited_ms)),
    Column("longest ms", cell=_ms(lambda failure: failure.longest_ms), leaves=10),
    Column("timeout ms", cell=_timeout),
)


def failure_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each cause of failed statements, with its cure; the most frequent first.

    The cause "lock held for too long" comes last, because it may follow from another cause.
    """
    by_cause: dict[str | int, list[tuple[Failure, Diagnosis]]] = {}
    consequences = _consequences(group)
    raised = {failure.error for failure in failed.failures_of(group.runs)}
    half_done = {
        seen.traits["at"]
        for seen in sightings(group, REPEATED)
        if seen.traits.get("committed") or seen.traits.get("after")
    }
    is_wrong = any(check.status == "failed" for check in user_checks(group))
    are_mixed = any(True for _ in sightings(group, OVERLAP))
    is_split = any(True for _ in sightings(group, SPLIT))
    failures = [
        failure
        for failure in failures_of(group)
        if failure.code != ERROR  # The message of SQLITE_ERROR already explains the cause.
        and not (failure.facts.statement == "checkpoint" and is_passive(failure.sql))  # It does no harm.
        # If threads share a connection, a ROLLBACK of one thread may undo the row to which the refused row of
        # another refers. The finding on the shared connection names this cause.
        and not (are_mixed and failure.code & 0xFF == CONSTRAINT)
        and not (_is_handled(failure, raised) and (not is_wrong or is_split or failure.at in half_done))
        and name(failure.code) not in consequences
    ]
    diagnoses = [(failure, diagnose(failure.code, failure.facts)) for failure in failures]
    explained = {_statement_key(failure) for failure, diagnosis in diagnoses if diagnosis.cause}
    upgrades = {seen.traits.get("then_at") for seen in sightings(group, SUSPICION) if seen.what == DEFERRED}
    for failure, diagnosis in diagnoses:
        is_upgrade = bool(failure.at) and failure.at in upgrades and failure.code & 0xFF == BUSY
        if diagnosis.cause or not (is_upgrade or _statement_key(failure) in explained):
            by_cause.setdefault(_finding_key(failure, diagnosis), []).append((failure, diagnosis))
    holder = _holder_sentence(group, by_cause)
    largest = sorted(by_cause.values(), key=_cause_sort_key)
    if is_wrong:  # Lost work is a more probable cause of wrong data than the error itself.
        largest.sort(key=lambda kinds: not _calls_after(kinds, raised, half_done)["swallowed_by"])
    for kinds in largest[:MAX_CAUSES]:
        first, diagnosis = kinds[0]
        slow_reader = _slow_rows_text(group, "read", first.waited_ms / 1000)
        after = _calls_after(kinds, raised, half_done)
        explanation = _explanation(first, diagnosis, holder, slow_reader)
        if explanation and diagnosis.cause and not (after["repeated"] or after["swallowed_by"]):
            explanation = f"{explanation} {diagnosis.cause.repetition}".rstrip()
        yield Finding(
            sentences.failed_statement,
            statement=shortened(first.sql, 60),
            at=first.at,
            error=name(first.code),
            more_errors=[*dict.fromkeys(name(failure.code) for failure, _ in kinds)][1:],
            message=None if diagnosis.cause else first.message,
            count=sum(failure.times for failure, _ in kinds),
            others=len({(failure.sql, failure.at) for failure, _ in kinds}) - 1,
            explanation=explanation,
            **after,
        )


def _calls_after(
    kinds: Sequence[tuple[Failure, Diagnosis]], raised: Container[str], half_done: Collection[str]
) -> dict[str, Any]:
    """Return facts for the finding on failures with the same cause: what calls did after a failure.

    - "given_up": number of calls that caught the error and returned without a commit
    - "swallowed_by": names of the functions of these calls, if more calls gave up in this way than committed
      after a failure, and no call raised the error; else empty
    - "repeated": whether all calls did their whole work again and committed, so that no work was lost

    `raised` has the names of errors that ended calls, such as "SQLITE_BUSY". `half_done` has lines such as
    "bank.py:27": after a failure there, calls may have repeated only a part of their work.
    """
    failures = [failure for failure, _ in kinds]
    given_up = sum(failure.given_up for failure in failures)
    is_raised = any(name(failure.code) in raised for failure in failures)
    is_swallowed = given_up > sum(failure.repeated for failure in failures) and not is_raised
    functions = dict.fromkeys(call for failure in failures for call in failure.given_up_by)
    is_repeated = all(failure.repeated for failure in failures) and not (half_done or is_raised or given_up)
    swallowed_by = [*functions] if is_swallowed else []
    return {"given_up": given_up, "swallowed_by": swallowed_by, "repeated": is_repeated}


def has_another_cure(group: Group) -> bool:
    """Return whether SQLite refused locks for a reason that a longer busy timeout does not remove."""
    refused = (failure for failure in failures_of(group) if failure.code & 0xFF == BUSY)
    causes = {diagnose(failure.code, failure.facts).cause for failure in refused}
    names = {cause.name for cause in causes if cause}
    is_left_open = any(left.traits["state"] == "written" for left in sightings(group, LEFT_OPEN))
    return bool(names - _CURED_BY_A_TIMEOUT) or (bool(names) and is_left_open)


_CURED_BY_A_TIMEOUT = {HELD_LONGER, "short-timeout", "no-timeout", "recovery"}
"""Names of causes that a longer busy timeout removes, or makes rarer."""


def are_repeated(group: Group) -> bool:
    """Return whether SQLite refused locks, and the calls always repeated their work and committed it."""
    raised = {failure.error for failure in failed.failures_of(group.runs)}
    refused = [failure for failure in failures_of(group) if failure.code & 0xFF == BUSY]
    return bool(refused) and all(failure.repeated and _lost_no_work(failure, raised) for failure in refused)


def is_survived(group: Group, line: str) -> bool:
    """Return whether SQLite refused locks at a line of code, and all calls went on and lost no work."""
    raised = {failure.error for failure in failed.failures_of(group.runs)}
    refused = [
        failure for failure in failures_of(group) if failure.at == line and failure.code & 0xFF == BUSY
    ]
    return bool(refused) and all(_lost_no_work(failure, raised) for failure in refused)


def _lost_no_work(failure: Failure, raised: Container[str]) -> bool:
    return not failure.given_up and name(failure.code) not in raised


def _is_handled(failure: Failure, raised: Container[str]) -> bool:
    """Return whether the failure violated a constraint, and its error ended no call (`raised`)."""
    return failure.code & 0xFF == CONSTRAINT and name(failure.code) not in raised


def _statement_key(failure: Failure) -> tuple[str, str, int]:
    return failure.sql, failure.at, failure.code & 0xFF


def _cause_sort_key(kinds: Sequence[tuple[Failure, Diagnosis]]) -> tuple[bool, int]:
    """Return a sort key: known causes before unknown causes, and more failures before fewer.

    The cause "lock held for too long" counts as unknown.
    """
    _, diagnosis = kinds[0]
    is_certain = diagnosis.cause is not None and diagnosis.cause.name != HELD_LONGER
    return not is_certain, -sum(failure.times for failure, _ in kinds)


def _holder_sentence(group: Group, causes: Container[str | int]) -> str:
    """Return a sentence on the holder, the transaction with the write lock; empty if it is unknown.

    `causes` has the names of the causes of all failures. LOCK_ORDER gives the sentence "Probably
    the holder itself waited for another file". If the holder's line is unknown, WAITS_FOR_ITSELF and
    COMMIT_BEHIND_READER give similar sentences.
    """
    if LOCK_ORDER in causes:
        return "Probably the holder itself waited for another file: cure that first."
    for hold in own_hold_findings(group):
        place = hold.facts["at"] or hold.facts["statement"]
        if hold.facts["work"] == CHECKPOINT:
            return f"The holder is the checkpoint of {place}: use PASSIVE."
        if hold.facts["work"] == UNFETCHED:
            return f"The holder is the open write of {place}."
        return f"The long transaction is that of {place}: make it shorter."
    for left in sightings(group, LEFT_OPEN):
        if left.traits["state"] == "written":
            return f"The holder is the transaction that {left.what} left open."
    for query in sightings(group, OPEN_STATEMENT):
        if query.traits.get("blob") == "write":
            return f"The holder is the blob handle of {query.traits['at'] or query.what}: close it."
    if WAITS_FOR_ITSELF in causes:
        return "Probably the holder itself waited for its own process: cure that first."
    if COMMIT_BEHIND_READER in causes:
        return "Probably the holder itself waited in COMMIT for a reader: cure that first."
    if statement := _slow_rows_text(group, "write", 0):
        return (
            f"The holder is probably {statement}: RETURNING keeps the write lock until all its rows are "
            "fetched. Call fetchall() at once."
        )
    return ""


def _slow_rows_text(group: Group, kind: str, min_s: float) -> str:
    """Return text on the statement whose rows the user's code probably worked on for longest.

    Such a statement may keep its lock until all rows are fetched. The time is that until the next statement
    of the call. Only times of `min_s` seconds or more count; the text is empty if there is none. `kind` is
    "read" for queries, "write" for statements with RETURNING.
    """
    slow = [
        (seconds, sighting)
        for sighting in sightings(group, SLOW_READ)
        if sighting.traits["kind"] == kind and (seconds := float(sighting.traits["seconds"])) >= min_s
    ]
    if not slow:
        return ""
    seconds, sighting = max(slow, key=lambda pair: pair[0])
    at = f" ({sighting.traits['at']})" if sighting.traits["at"] else ""
    return f"{shortened(sighting.what, 60)}{at}, whose call worked for {seconds:.2g} s more"


def _explanation(failure: Failure, diagnosis: Diagnosis, holder: str, slow_reader: str) -> str | None:
    """Return the cause and cure of a failure as text; None if the cause is unknown.

    `holder` is a sentence on the transaction with the write lock. `slow_reader` is a query for which COMMIT
    may have waited. Both may be empty.
    """
    if not diagnosis.cause:
        return None
    if diagnosis.cause.name == DUPLICATE_KEY and failure.earlier_query:
        return _duplicate_key_text(failure.earlier_query)
    cure = diagnosis.cause.cure
    if diagnosis.cause.name == LOCK_ORDER and failure.orders:
        return f"{failure.orders}: each waits for the other until the timeout. {cure}"
    if diagnosis.cause.name == HELD_LONGER and holder:
        cure = holder
    if diagnosis.cause.name == COMMIT_BEHIND_READER and slow_reader and not failure.reader:
        cure = f"The reader is probably {slow_reader}: fetch all rows before the work. {cure}"
    if diagnosis.cause.name in _UPGRADES and "BEGIN IMMEDIATE" in cure:
        cure += _BEGIN_IMMEDIATE.get(failure.library, "")
    return f"{diagnosis.cause.cause}{_details(failure, diagnosis.cause.name)} {cure}"


def _duplicate_key_text(query: str) -> str:
    """Return cause and cure of a violated UNIQUE index.

    `query` is an earlier query of the call, from whose result the call probably made the key.
    """
    cure = (
        "Use BEGIN IMMEDIATE before that query, or INSERT ... SELECT max(...) + 1."
        if _NEXT_NUMBER.search(query)
        else "Use INSERT ... ON CONFLICT, or BEGIN IMMEDIATE before that query."
    )
    return (
        "A row with this key exists. The call had read the table before, outside of the write's transaction: "
        f"{query}. Two calls read the same before either inserted its row. {cure}"
    )


def _details(failure: Failure, cause: str) -> str:
    """Return a sentence that names the transaction or query behind `cause`; empty if it is unknown."""
    if cause == WAITS_FOR_ITSELF and failure.held_since:
        return f" Its transaction began with {failure.held_since}."
    if cause == BUSY_HANDLER:
        return f" It was set at {failure.busy_handler}."
    if cause == OPEN_BLOB and failure.open_blob:
        return f" The handle is that of {failure.open_blob}."
    if cause == LOCK_ORDER and failure.opposite:
        order = " before ".join(failure.lock_order)
        return f" Here it locked {order}, and the transaction of {failure.opposite} the reverse."
    if cause == COMMIT_BEHIND_READER and failure.reader:
        return f" The reader is the same process: {failure.reader}. Fetch all its rows before COMMIT."
    if cause == HELD_LONGER and failure.scan:
        return f" This statement itself reads a whole table in the lock ({failure.scan}): create an index."
    return ""


def _finding_key(failure: Failure, diagnosis: Diagnosis) -> str | int:
    """Return the cause's name, or the result code if the cause is unknown.

    Failures with equal keys share a finding. Causes with the same cure have the same key.
    """
    if not diagnosis.cause:
        return failure.code
    return _SAME_CURE.get(diagnosis.cause.name, diagnosis.cause.name)


def refused_upgrades(group: Group) -> set[str]:
    """Return the lines of code of writes that failed because their transaction had read before.

    Such a write needs an upgrade from a read lock to the write lock, which SQLite refused.
    """
    return {
        failure.at
        for failure in failures_of(group)
        if (cause := diagnose(failure.code, failure.facts).cause) and cause.name in _UPGRADES
    }


def explained_errors(group: Group) -> set[str]:
    """Return the names of the group's SQLite errors whose cause is known, such as "SQLITE_BUSY"."""
    return _consequences(group) | {
        name(failure.code) for failure in failures_of(group) if diagnose(failure.code, failure.facts).cause
    }


def _consequences(group: Group) -> set[str]:
    """Return the names of errors that follow from unclosed connections, a moved database or lost locks."""
    unclosed = {name(CANTOPEN)} if any(True for _ in sightings(group, UNCLOSED)) else set()
    return unclosed.union(*(errors_after(group, kind) for kind in (MOVED, CLOSED)))
