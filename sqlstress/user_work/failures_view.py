"""Report on failed statements of the user's code: a table, and the causes and cures of the most frequent.

A sighting is an observation in the report, such as a failed statement. A failure is a statement that failed
with a result code. Named rules in `analysis.causes` conclude the cause from the failure's facts. A group has
the runs that share a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from sqlstress.analysis import failed, sentences
from sqlstress.analysis.causes import Diagnosis, Facts, diagnose
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, sightings
from sqlstress.analysis.sentences import TracedStep
from sqlstress.analysis.wal_growth import growth_in_trial
from sqlstress.races.suspicions import DEFERRED, LOST_DATA
from sqlstress.recording import (
    CLOSED,
    COPIED,
    DAMAGE_CODES,
    DELETED,
    FAILED_STATEMENT,
    IN_MEMORY,
    LEFT_OPEN,
    LONG_HOLD,
    LONG_HOLD_S,
    LOST_LOCKS,
    MIN_HOLD_S,
    MOVED,
    MOVED_CODES,
    NO_EFFECT,
    OPEN_STATEMENT,
    OVERLAP,
    REPEATED,
    SCHEMA_CHANGE,
    SCRIPT,
    SLOW_READ,
    SPLIT,
    UNCLOSED,
)
from sqlstress.recording.failure_facts import code_of, facts_of
from sqlstress.report.results import Check, Sighting
from sqlstress.show.blocks import NAME, Block, Column, Legend, Note, ms_cell, shortened, table_of
from sqlstress.sqlite_codes import (
    BUSY,
    CANTOPEN,
    CONSTRAINT,
    ERROR,
    LOCKED_SHAREDCACHE,
    name,
)
from sqlstress.statistics.units import NS_PER_S, digits, plural
from sqlstress.user_work import AFTER, SUSPICION, UNDER

MAX_ROWS = 5
"""Maximum number of table rows; the JSON report has all failed statements."""
_SAME_CURE = {"stale-snapshot": "read-before-write"}
"""Name of a cause to the name of the cause with the same cure, whose finding it shares."""
_NEXT_NUMBER = re.compile(r"\b(max|count)\s*\(|\border\s+by\b.*\bdesc\b", re.IGNORECASE)
"""Pattern of queries that serve to find the next number."""
_MISSING_OBJECT = re.compile(r"no such (table|column|index|view)|already exists|duplicate column")
MAX_CAUSES = 3
"""Maximum number of findings of each kind, for example of causes of failed statements."""
NS_PER_MS = NS_PER_S // 1000
MIN_HOLDS, MIN_HOLD_SHARE, MIN_OUTSIDE = 2, 0.05, 0.5
"""Minimums for a finding on a transaction that holds the write lock for long.

MIN_HOLDS: number of long holds. MIN_HOLD_SHARE: their share of the process's time. MIN_OUTSIDE: share of the
longest hold that the process spent outside of SQLite; not needed if the slow work is known.
"""
HELD_LONGER, LOCK_ORDER, WAITS_FOR_ITSELF = "held-longer", "lock-order", "waits-for-itself"
COMMIT_BEHIND_READER, DUPLICATE_KEY = "commit-behind-reader", "duplicate-key"
_UPGRADES = ("read-before-write", "stale-snapshot", "repeated-statement", "left-open-reads")
"""Names of causes for failed writes of transactions that had read before."""


_BEGIN_IMMEDIATE = {
    "django": ' In Django 5.1: "OPTIONS": {"transaction_mode": "IMMEDIATE"}.',
    "peewee": ' In Peewee: db.atomic("IMMEDIATE").',
    "sqlalchemy": ' In SQLAlchemy: isolation_level=None, and an event "begin" with BEGIN IMMEDIATE.',
}
"""Sentences that say how to use BEGIN IMMEDIATE, by library."""


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


# Blocks and findings of the report.


def failure_blocks(group: Group, *, with_warmup: bool = False) -> Iterator[Block]:
    """Yield the table of failed statements; nothing without failures.

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
    half_done = {seen.traits["at"] for seen in sightings(group, REPEATED) if seen.traits.get("committed")}
    is_wrong = any(check.status == "failed" for check in user_checks(group))
    failures = [
        failure
        for failure in failures_of(group)
        if failure.code != ERROR  # Its message already explains the cause.
        and not (_is_handled(failure, raised) and (not is_wrong or failure.at in half_done))
        and name(failure.code) not in consequences
    ]
    diagnoses = [(failure, diagnose(failure.code, failure.facts)) for failure in failures]
    explained = {_statement_key(failure) for failure, diagnosis in diagnoses if diagnosis.cause}
    upgrades = {
        sighting.traits.get("then_at")
        for sighting in sightings(group, SUSPICION)
        if sighting.what == DEFERRED
    }
    for failure, diagnosis in diagnoses:
        is_upgrade = bool(failure.at) and failure.at in upgrades and failure.code & 0xFF == BUSY
        if diagnosis.cause or not (is_upgrade or _statement_key(failure) in explained):
            by_cause.setdefault(_finding_key(failure, diagnosis), []).append((failure, diagnosis))
    largest, holder = sorted(by_cause.values(), key=_cause_sort_key), _holder(group, by_cause)
    for kinds in largest[:MAX_CAUSES]:
        first, diagnosis = kinds[0]
        slow_reader = _slow_rows(group, "read", first.waited_ms / 1000)
        yield Finding(
            sentences.failed_statement,
            statement=shortened(first.sql, 60),
            at=first.at,
            error=name(first.code),
            more_errors=[*dict.fromkeys(name(failure.code) for failure, _ in kinds)][1:],
            message=None if diagnosis.cause else first.message,
            count=sum(failure.times for failure, _ in kinds),
            others=len({(failure.sql, failure.at) for failure, _ in kinds}) - 1,
            explanation=_explanation(first, diagnosis, holder, slow_reader),
            **_calls_after(kinds, raised),
        )


def _calls_after(kinds: Sequence[tuple[Failure, Diagnosis]], raised: Container[str]) -> dict[str, Any]:
    """Return two facts: "given_up", a number of calls, and "repeated", whether calls repeated their work.

    "repeated" is true if each statement in `kinds` failed in a call that committed later, and no call gave up
    or raised the error. `raised` has the errors that ended calls.
    """
    failures = [failure for failure, _ in kinds]
    given_up = sum(failure.given_up for failure in failures)
    is_raised = any(name(failure.code) in raised for failure in failures)
    is_repeated = all(failure.repeated for failure in failures) and not is_raised and not given_up
    return {"given_up": given_up, "repeated": is_repeated}


def _is_handled(failure: Failure, raised: Container[str]) -> bool:
    """Return whether the failure is a violated constraint, and the user's code always caught the error.

    `raised` has the errors that ended calls.
    """
    return failure.code & 0xFF == CONSTRAINT and name(failure.code) not in raised


def _statement_key(failure: Failure) -> tuple[str, str, int]:
    """Return the failure's SQL, line and primary result code."""
    return failure.sql, failure.at, failure.code & 0xFF


def _cause_sort_key(kinds: Sequence[tuple[Failure, Diagnosis]]) -> tuple[bool, int]:
    """Return the sort key of a cause: known causes first, and among equals those of more failures.

    The cause "lock held for too long" counts as unknown.
    """
    _, diagnosis = kinds[0]
    is_certain = diagnosis.cause is not None and diagnosis.cause.name != HELD_LONGER
    return not is_certain, -sum(failure.times for failure, _ in kinds)


def _holder(group: Group, causes: Container[str | int]) -> str:
    """Return a sentence on the transaction that held the write lock; empty if it is unknown.

    `causes` has the keys of the causes of all failures, see `_finding_key`. If a COMMIT waited for a reader,
    the sentence refers to this cause.
    """
    for hold in own_hold_findings(group):
        return (
            f"The long transaction is that of {hold.facts['at'] or hold.facts['statement']}: make it shorter."
        )
    if COMMIT_BEHIND_READER in causes:
        return "The holder itself waited in COMMIT for a reader: end that cause first."
    if statement := _slow_rows(group, "write", 0):
        return (
            f"The holder is probably {statement}: RETURNING keeps the write lock until all its rows are "
            "fetched. Call fetchall() at once."
        )
    return ""


def _slow_rows(group: Group, kind: str, min_s: float) -> str:
    """Return text on the statement after which the user's code worked for longest before its next one.

    Only times of `min_s` seconds or more count; empty if there is none. `kind` is "read" for queries, "write"
    for statements with RETURNING.
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

    `holder` is a sentence on the transaction with the write lock. `slow_reader` is a query of another process
    for which COMMIT may have waited. Both may be empty.
    """
    if not diagnosis.cause:
        return None
    if diagnosis.cause.name == DUPLICATE_KEY and failure.earlier_query:
        return _duplicate_key(failure.earlier_query)
    cure = diagnosis.cause.cure
    if diagnosis.cause.name == HELD_LONGER and holder:
        cure = holder
    if diagnosis.cause.name == COMMIT_BEHIND_READER and slow_reader and not failure.reader:
        cure = f"The reader is probably {slow_reader}: fetch all rows before the work. {cure}"
    if diagnosis.cause.name in _UPGRADES and "BEGIN IMMEDIATE" in cure:
        cure += _BEGIN_IMMEDIATE.get(failure.library, "")
    return f"{diagnosis.cause.cause}{_details(failure, diagnosis.cause.name)} {cure}"


def _duplicate_key(query: str) -> str:
    """Return cause and cure of a UNIQUE failure. `query` is the query by which the call chose the key."""
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
    if cause == LOCK_ORDER and failure.opposite:
        order = " before ".join(failure.lock_order)
        return f" Here it locked {order}, and the transaction of {failure.opposite} the reverse."
    if cause == COMMIT_BEHIND_READER and failure.reader:
        return f" The reader is the same process: {failure.reader}. Fetch all its rows before COMMIT."
    if cause == HELD_LONGER and failure.scan:
        return f" This statement itself reads a whole table in the lock ({failure.scan}): create an index."
    return ""


def _finding_key(failure: Failure, diagnosis: Diagnosis) -> str | int:
    """Return the key by which failures share a finding: the cause's name, or the code if unknown.

    Causes with the same cure have the same key.
    """
    if not diagnosis.cause:
        return failure.code
    return _SAME_CURE.get(diagnosis.cause.name, diagnosis.cause.name)


def refused_upgrades(group: Group) -> set[str]:
    """Return the lines of code of refused upgrades: writes that failed because their transaction had read.

    An upgrade is the step from a read lock to the write lock.
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
    """Return the names of errors caused by unclosed connections, a moved database or lost locks."""
    unclosed = {name(CANTOPEN)} if any(True for _ in sightings(group, UNCLOSED)) else set()
    return unclosed.union(*(errors_after(group, kind) for kind in (MOVED, CLOSED)))


def errors_after(group: Group, kind: str) -> list[str]:
    """Return the names of errors that follow from a cause of lost locks; empty if it was not observed.

    `kind` is MOVED (the file was moved, replaced or deleted while open) or CLOSED (code other than SQLite
    opened and closed a file of the database, which drops the locks of the process).
    """
    if not any(sighting.what == kind for sighting in sightings(group, LOST_LOCKS)):
        return []
    codes = MOVED_CODES if kind == MOVED else {*DAMAGE_CODES} - {CANTOPEN}
    return sorted({name(failure.code) for failure in failures_of(group) if failure.code & 0xFF in codes})


def lock_losses(group: Group) -> Iterator[Finding]:
    """Yield findings on lost locks: a process lost its locks on a database that it had open."""
    kinds: dict[tuple[str, str, str], list[Sighting]] = {}
    for sighting in sightings(group, LOST_LOCKS):
        key = (sighting.what, sighting.traits["file"], sighting.traits["at"])
        kinds.setdefault(key, []).append(sighting)
    moved_files = {file for kind, file, _ in kinds if kind == MOVED}
    kinds = {key: found for key, found in kinds.items() if key[0] != DELETED or key[1] not in moved_files}
    for (kind, file, at), found in list(kinds.items())[:MAX_CAUSES]:
        if kind in (COPIED, MOVED):
            count, program = sum(sighting.count for sighting in found), found[0].traits["program"]
            moved = kind == MOVED
            yield Finding(
                sentences.touched_file,
                file=file,
                count=count,
                program=program,
                moved=moved,
                at=at or None,
                errors=errors_after(group, MOVED) if moved else [],
            )
            continue
        facts: dict[str, Any] = {}
        if kind == DELETED:
            written = {sighting.traits.get("written") for sighting in found}
            facts = {
                "holders": sum(sighting.count for sighting in found if sighting.traits.get("lock")),
                "signs": any(other != DELETED for other, _, _ in kinds),
                "written": "yes" in written if written != {None} else None,
            }
        if kind == CLOSED:
            facts = {"errors": errors_after(group, CLOSED)}
        count = sum(sighting.count for sighting in found)
        yield Finding(sentences.lost_locks, kind=kind, file=file, count=count, at=at or None, **facts)


def wal_growth_findings(group: Group, *, is_automatic: bool = True) -> Iterator[Finding]:
    """Yield a finding on the largest WAL of the trials whose WAL grew too much; nothing if none did.

    `is_automatic` is False if the user's connections make no automatic checkpoints.
    """
    growths = [
        (trial.wal, kind, run.case)
        for run in group.runs
        for trial in run.trials
        if trial.wal
        and (kind := growth_in_trial(trial.wal, run.case.settings.wal_autocheckpoint if is_automatic else 0))
    ]
    if not growths:
        return
    wal, kind, case = max(growths, key=lambda growth: growth[0].most_frames)
    yield Finding(
        sentences.wal_growth,
        where=group.place(case),
        kind=kind,
        wal_bytes=wal.most_frames * wal.page_size,
        frames=wal.most_frames,
        checkpointed=wal.most_checkpointed / wal.most_frames,
        live_frames=wal.frames,
        end_bytes=wal.end_bytes,
    )


def wal_findings(group: Group, *, is_automatic: bool = True) -> Iterator[Finding]:
    """Yield findings on queries that stayed open. Without such queries, yield a finding on a grown WAL.

    `is_automatic` is False if the user's connections make no automatic checkpoints.
    """
    statements = dict[tuple[str, str], float]()
    for sighting in sightings(group, OPEN_STATEMENT):
        kind, seconds = (sighting.what, sighting.traits["at"]), float(sighting.traits["seconds"])
        statements[kind] = max(seconds, statements.get(kind, 0.0))
    growth = [*wal_growth_findings(group, is_automatic=is_automatic)]
    large = growth[0].facts["wal_bytes"] if growth else None
    for (sql, at), seconds in list(statements.items())[:MAX_CAUSES]:
        yield Finding(
            sentences.open_statement,
            statement=shortened(sql, 60),
            seconds=seconds,
            at=at or None,
            wal_bytes=large,
        )
    if not statements:
        yield from growth


def own_hold_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on transactions of the user's own code that held the write lock for long.

    The reason is a slow write, or work outside of SQLite. A transaction with a single long hold is left out:
    the hold may be an accident of a busy machine.
    """
    failures = failures_of(group)
    waited_for = {failure.held_since for failure in failures}
    causes = (diagnose(failure.code, failure.facts).cause for failure in failures)
    shortest_s = MIN_HOLD_S if any(cause and cause.name == HELD_LONGER for cause in causes) else LONG_HOLD_S
    kinds: dict[tuple[str, str], list[Sighting]] = {}
    for sighting in sightings(group, LONG_HOLD):
        kinds.setdefault((sighting.what, sighting.traits.get("work", "")), []).append(sighting)
    for (sql, work), found in list(kinds.items())[:MAX_CAUSES]:
        longest = max(found, key=lambda sighting: float(sighting.traits["seconds"]))
        count = sum(sighting.count for sighting in found)
        share = max(float(sighting.traits["share"]) for sighting in found)
        outside = float(longest.traits["outside"])
        if float(longest.traits["seconds"]) < shortest_s:
            continue
        if count < MIN_HOLDS or share < MIN_HOLD_SHARE or (outside < MIN_OUTSIDE and not work):
            continue
        known = {
            name: next(filter(None, (sighting.traits[name] for sighting in found)), None)
            for name in ("at", "began_at")
        }
        if any(line and f"({line})" in since for line in known.values() for since in waited_for):
            continue  # Its process waited for itself: the cause of that failure says so.
        yield Finding(
            sentences.long_hold,
            statement=shortened(sql, 60),
            count=count,
            seconds=float(longest.traits["seconds"]),
            outside=outside,
            at=known["at"],
            began_at=known["began_at"],
            work=work,
        )


def unclosed_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each line of code that opens connections which are never closed."""
    most: dict[str, int] = {}
    for sighting in sightings(group, UNCLOSED):
        most[sighting.what] = max(most.get(sighting.what, 0), int(sighting.traits["open"]))
    for at, count in [*most.items()][:MAX_CAUSES]:
        yield Finding(sentences.unclosed, at=at or None, count=count)


def memory_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each database in memory, which other processes cannot see."""
    kinds = dict.fromkeys((sighting.what, sighting.traits["at"]) for sighting in sightings(group, IN_MEMORY))
    for name_given, at in [*kinds][:MAX_CAUSES]:
        yield Finding(
            sentences.in_memory,
            name=shortened(name_given, 80),
            at=at or None,
            cache="cache=shared" in name_given,
        )


def split_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each line of code that commits a transaction which other code had begun.

    The line calls `executescript`, or ends an inner block `with connection`.
    """
    kinds: dict[str, list[Sighting]] = {}
    for sighting in sightings(group, SPLIT):
        kinds.setdefault(sighting.what, []).append(sighting)
    for at, found in list(kinds.items())[:MAX_CAUSES]:
        lines = [line for sighting in found if (line := sighting.traits["at"])]
        yield Finding(
            sentences.split_transaction,
            at=at,
            count=sum(sighting.count for sighting in found),
            began_at=lines[0] if lines else None,
            way=found[0].traits.get("way", SCRIPT),
        )


def schema_change_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on a schema change outside of a transaction, if statements failed because of it."""
    messages = [failure.message for failure in failures_of(group) if failure.code == ERROR]
    broken = [message for message in messages if _MISSING_OBJECT.search(message)]
    changes = [*sightings(group, SCHEMA_CHANGE)] if broken else []
    for change in changes[:1]:
        yield Finding(
            sentences.schema_change,
            statement=shortened(change.what, 60),
            at=change.traits["at"] or None,
            message=broken[0],
        )


def overlap_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on overlapping transactions of threads that share a connection."""
    counts: dict[tuple[tuple[str, str], ...], int] = {}
    for sighting in sightings(group, OVERLAP):
        kind = tuple(sighting.traits.items())
        counts[kind] = counts.get(kind, 0) + sighting.count
    # Prefer an overlap that ended with ROLLBACK, because it lost data, to a more frequent overlap.
    kinds = [(dict(kind), count) for kind, count in counts.items()]
    kinds.sort(key=lambda pair: (pair[0]["end"] != "ROLLBACK", -pair[1]))
    for traits, _ in kinds[:1]:
        yield Finding(
            sentences.overlap,
            count=sum(counts.values()),
            first=TracedStep(shortened(traits["first"], 60), traits["first_at"]),
            then=TracedStep(shortened(traits["then"], 60), traits["then_at"]),
            end=traits["end"] or None,
            end_at=traits["end_at"] or None,
        )


def user_checks(group: Group) -> Iterator[Check]:
    """Yield the results of the user's checks in all runs of a group."""
    return (check for run in group.runs for check in run.verdict.checks if check.name in (UNDER, AFTER))


def repeat_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on calls that did work twice, or committed a part of it, after a refused write.

    Such calls may be why a check of the user failed. So yield nothing if all checks passed, or if another
    cause of the failed check is known.
    """
    is_wrong = any(check.status == "failed" for check in user_checks(group))
    others = (LEFT_OPEN, LOST_LOCKS, OVERLAP, SPLIT, SUSPICION, NO_EFFECT)
    causes = (
        sighting.topic != SUSPICION or sighting.what in LOST_DATA
        for topic in others
        for sighting in sightings(group, topic)
    )
    if not is_wrong or any(causes):
        return
    kinds: dict[tuple[str, str], list[Sighting]] = {}
    for sighting in sightings(group, REPEATED):
        kinds.setdefault((sighting.what, sighting.traits.get("committed", "")), []).append(sighting)
    for (call, committed), found in list(kinds.items())[:MAX_CAUSES]:
        yield Finding(
            sentences.repeated_transaction,
            call=call,
            count=sum(sighting.count for sighting in found),
            most=max(int(sighting.traits["most"]) for sighting in found),
            at=max(found, key=lambda sighting: sighting.count).traits["at"] or None,
            committed=committed or None,
        )


def no_effect_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on PRAGMAs without effect in a transaction, and on COMMIT or ROLLBACK outside of one."""
    kinds: dict[tuple[str, str], list[Sighting]] = {}
    for sighting in sightings(group, NO_EFFECT):
        kinds.setdefault((sighting.what, sighting.traits["at"]), []).append(sighting)
    undone = {
        seen.traits.get("write") for (sql, _), found in kinds.items() for seen in found if sql == "ROLLBACK"
    }
    for (sql, at), found in list(kinds.items())[:MAX_CAUSES]:
        if sql == "COMMIT" and found[0].traits.get("write") in undone:
            continue
        yield Finding(
            sentences.pragma_without_effect,
            statement=shortened(sql, 60),
            at=at or None,
            count=sum(sighting.count for sighting in found),
            began=found[0].traits["began"],
            began_at=found[0].traits["began_at"] or None,
            write=found[0].traits.get("write"),
        )


def open_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each function that left a transaction open.

    The function ended, or closed the connection, before it committed.
    """
    kinds: dict[tuple[str, bool], list[Sighting]] = {}
    for sighting in sightings(group, LEFT_OPEN):
        kinds.setdefault((sighting.what, bool(sighting.traits.get("closed"))), []).append(sighting)
    for (call, is_closed), found in list(kinds.items())[:MAX_CAUSES]:
        codes = [code for sighting in found if (code := sighting.traits["failed_commit"])]
        lines = [line for sighting in found if (line := sighting.traits["at"])]
        yield Finding(
            sentences.left_open,
            call=call,
            count=sum(sighting.count for sighting in found),
            began=found[0].traits["began"],
            at=lines[0] if lines else None,
            error=name(int(codes[0])) if codes else None,
            written=any(sighting.traits["state"] == "written" for sighting in found),
            tasks=any(sighting.traits.get("tasks") for sighting in found),
            closed=is_closed,
        )
