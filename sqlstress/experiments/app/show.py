"""Report of an application: tables, settings of the connections, and exceptions of transactions.

Workers report observations (sightings) with facts as text (traits), such as the busy timeout of a connection.
Connections are of one kind if all their facts are equal. A call runs a transaction once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.causes import Facts, code_in, diagnose
from sqlstress.analysis.failed import failure_time_of, failures_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic, sightings
from sqlstress.analysis.scaling import starvation, throughput_findings
from sqlstress.analysis.wording import listing, percent
from sqlstress.experiments.app import (
    BEGINNING,
    BEGINS,
    BROKEN,
    BROKEN_TRANSACTION,
    CONNECTION,
    EXCEPTION,
    HERE,
    INSIDE,
    LOGGED,
    PENDING_ROLLBACK,
    SESSION,
    SINGLE_STATEMENT,
    THREAD,
    THREAD_RAISED,
    THREADED,
    UNREAD,
    UNSEEN,
    WHOLE,
    is_trial_database,
    sentences,
)
from sqlstress.experiments.app.migrations import is_migration
from sqlstress.races.suspicions import DEFERRED
from sqlstress.recording import CALL_COST, IN_MEMORY, NO_EFFECT
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.report.results import Sighting
from sqlstress.show.at_a_rate import rate_findings
from sqlstress.show.blocks import Block, Column, Paragraph, shortened
from sqlstress.show.case_table import FAILED_SHARE, Row
from sqlstress.show.plots import Plot
from sqlstress.sqlite_codes import BUSY
from sqlstress.statistics.units import digits, format_duration, plural
from sqlstress.user_work import failure_records
from sqlstress.user_work.call_findings import (
    backup_findings,
    lock_losses,
    memory_findings,
    no_effect_findings,
    open_findings,
    overlap_findings,
    own_hold_findings,
    passed_over_findings,
    repeat_findings,
    schema_change_findings,
    split_findings,
    unclosed_findings,
    wal_findings,
)
from sqlstress.user_work.failures_view import (
    are_repeated,
    explained_errors,
    failure_blocks,
    failure_findings,
    has_another_cure,
    refused_upgrades,
)
from sqlstress.user_work.lock_holders_view import lock_findings, lock_holder_blocks
from sqlstress.user_work.show import (
    UserPresenter,
    count_by_kind,
    isolation_findings,
    shorter_transactions,
)
from sqlstress.user_work.suspicions_view import first_suspicions, lone_step_findings, suspicion_findings

MIN_OPENING_SHARE, MIN_OPENINGS = 0.3, 0.9
"""Least share of a call's time, and least connections per call, to report openings.

Both must be reached.
"""
OPENING_EXCESS = 3
"""Limit of the time counted for an opening, as a multiple of the time without load.

The rest of a longer time was a wait for something else.
"""
_COSTS = ("seconds", "connections", "opening_s", "first_s", "commits")
MIN_COMMITS = 10
"""Minimum number of commits per call for a finding on calls that commit many times."""
MIN_TIMEOUT_MS = 1000
"""Minimum busy timeout without a finding, in ms: it outlasts a checkpoint or a larger transaction."""
MAX_KINDS = 5
"""Maximum number of kinds of connections, and of exceptions, in the text; the JSON report has all."""
LOCK_HOLDERS = "your transactions"
"""Name of the worker processes in the list of programs that held the write lock."""
_LONGEST = 200
_SETTINGS = ("database", "journal_mode", "synchronous", "busy_timeout", "foreign_keys", "python")

Traits = Mapping[str, str]


def _kinds(group: Group, topic: str) -> list[tuple[dict[str, str], int]]:
    """Return a pair for each kind of connection: its facts as text, and the number of connections.

    `topic` is CONNECTION, SESSION or BEGINS.
    """
    kinds = count_by_kind(group, topic, lambda sighting: tuple(sighting.traits.items()))
    return [(dict(traits), count) for traits, count in kinds.items()]


def _lines(lead: str, kinds: Sequence[tuple[str, int]]) -> Iterator[str]:
    for number, (line, count) in enumerate(kinds[:MAX_KINDS]):
        yield f"{'Other connections: ' if number else lead}{line} ({plural(count, 'connection')})."
    if len(kinds) > MAX_KINDS:
        yield f"{digits(len(kinds) - MAX_KINDS)} more kinds of connections are in the JSON report."


# Settings of connections to files, and findings on unwise settings.


def _committers(kinds: list[tuple[dict[str, str], int]]) -> list[tuple[dict[str, str], int]]:
    """Return the kinds of connections that committed data; all kinds if no connection did.

    Settings of other connections affect no commit, and may have been read before a library changed them.
    """
    # Older reports have no trait "committed", so look at "writes_begin" instead.
    return [
        kind for kind in kinds if kind[0].get("committed", kind[0].get("writes_begin")) not in ("no", "")
    ] or kinds


def _file_connections(group: Group) -> Iterator[str]:
    # Connections with equal settings share a line, even if their transactions differ.
    counts: Counter[tuple[str, ...]] = Counter()
    traits_by_settings: dict[tuple[str, ...], list[Traits]] = {}
    kinds = _kinds(group, CONNECTION)
    for traits, _ in _committers(kinds):
        settings = tuple(traits.get(name, "") for name in _SETTINGS)
        traits_by_settings.setdefault(settings, []).append(traits)
    for traits, count in kinds:
        # Count a connection without commits only if a connection with commits has equal settings.
        settings = tuple(traits.get(name, "") for name in _SETTINGS)
        if settings in traits_by_settings:
            counts[settings] += count
    # With --start, no transactions are called, so the ways in which transactions begin are unknown.
    begins = {
        settings: "" if group.case.spec.situation else _begin(traits_by_settings[settings])
        for settings in counts
    }
    lines = [(_settings(begins[settings], *settings), count) for settings, count in counts.items()]
    yield from _lines("Settings of your connections (as read from SQLite): ", lines)
    if unread := sum(sighting.count for sighting in sightings(group, UNREAD)):
        yield f"The settings of {plural(unread, 'connection')} could not be read."
    if unseen := sum(sighting.count for sighting in sightings(group, UNSEEN)):
        yield (
            f"{digits(unseen)} more {'connection was' if unseen == 1 else 'connections were'} not examined: "
            "each process examines the first 50 that it opens."
        )


def _settings(
    begin: str, database: str, mode: str, synchronous: str, timeout: str, keys: str, python: str
) -> str:
    parts = [
        f"journal_mode={mode}",
        f"synchronous={synchronous}",
        f"busy timeout {_time(timeout)}",
        f"foreign keys {keys.partition(',')[0]}",
        python,
        begin,
        f"database {database.removeprefix(INSIDE)}" if database != HERE else "",
    ]
    return shortened(", ".join(filter(None, parts)), _LONGEST)


def _begin(connections: Sequence[Traits]) -> str:
    """Return a phrase on how writes begin, such as "writes begin IMMEDIATE"."""
    begins = _ways(connections, "writes_begin")
    statements = [way for way in begins if way != SINGLE_STATEMENT]
    parts = [f"writes begin {listing(statements)}"] if statements else []
    if SINGLE_STATEMENT in begins:
        parts.append("statements that write are transactions of their own")
    return " or ".join(parts) or _without_writes(connections)


def _without_writes(connections: Sequence[Traits]) -> str:
    """Return a phrase on connections whose writes were not seen, with the reason if it is known."""
    watched = {traits.get("watched", WHOLE) for traits in connections}
    if THREADED in watched:
        return "writes not examined (check_same_thread=False, several threads at work)"
    if locks := _ways(connections, "locks"):
        return f"transactions begin {listing(locks)}, no writes seen"
    if BEGINNING in watched:
        return "no writes in the first statements of a connection"
    return "no writes seen"


def _ways(connections: Sequence[Traits], name: str) -> list[str]:
    return list(
        dict.fromkeys(way for traits in connections for way in traits.get(name, "").split(", ") if way)
    )


def _milliseconds(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= 10 else None


def _time(text: str) -> str:
    milliseconds = _milliseconds(text)
    return text if milliseconds is None else format_duration(milliseconds / 1000)


def _is_busy(group: Group) -> bool:
    return any(failure.code & 0xFF == BUSY for failure in failure_records.failures_of(group))


def setting_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each unwise setting of connections to SQLite files."""
    kinds = [traits for traits, _ in _kinds(group, CONNECTION)]
    ours = [kind for kind in _kinds(group, CONNECTION) if is_trial_database(kind[0].get("database", ""))]
    here = [traits for traits, _ in _committers(ours)]
    if not (are_repeated(group) or has_another_cure(group)):
        yield from _short_timeout(here)
    traced = any(suspicion.what == DEFERRED for suspicion in first_suspicions(group).values())
    traced = traced or bool(refused_upgrades(group))
    # A transaction that reads and then fails to write may be why a connection has no commits. So look at all
    # connections to the trial's databases, not only at those with commits.
    if not traced and any(traits.get("upgrades") == "yes" for traits, _ in ours):
        yield Finding(shared.deferred_upgrade)
    modes = {traits.get("journal_mode") for traits in here}
    if modes & {"off", "memory"}:
        yield Finding(sentences.journal_mode, on_disk=False)
    # DELETE is the default. Somebody has chosen the other modes, so they are only named if they do harm.
    elif "delete" in modes or (modes & {"truncate", "persist"} and _is_busy(group)):
        yield Finding(sentences.journal_mode, on_disk=True)
    if any(traits.get("synchronous") == "off" for traits in here):
        yield Finding(sentences.synchronous_off)
    # If the PRAGMA had no effect, the finding on it names the cause.
    ignored = any("foreign_keys" in sighting.what.lower() for sighting in sightings(group, NO_EFFECT))
    if not ignored and any(traits.get("foreign_keys") == BROKEN for traits in here):
        yield Finding(sentences.foreign_keys)
    settings = {
        tuple(map(traits.get, ("journal_mode", "synchronous", "busy_timeout")))
        for traits in here
        if traits["database"] == HERE
    }
    if len(settings) > 1:
        yield Finding(sentences.settings_differ, kinds=len(settings))
    # If the report has observations IN_MEMORY, other findings name these databases. Older reports lack them.
    named = (":memory:",) if any(True for _ in sightings(group, IN_MEMORY)) else ()
    other_names = dict.fromkeys(
        name
        for traits in kinds
        if not is_trial_database(name := traits.get("database", HERE)) and name not in named
    )
    if other_names:
        yield Finding(sentences.other_databases, names=[shortened(name, 80) for name in other_names][:3])


def _short_timeout(here: list[dict[str, str]]) -> Iterator[Finding]:
    timeouts = {
        milliseconds: traits
        for traits in reversed(here)
        if (milliseconds := _milliseconds(traits.get("busy_timeout", ""))) is not None
    }
    least = min(timeouts, default=MIN_TIMEOUT_MS)
    if least < MIN_TIMEOUT_MS:
        opened = timeouts[least].get("opened_with", "")
        changed = None if opened in (str(least), "None", "") else _time(opened)
        timeout = _time(str(least)) if least else "0"
        yield Finding(sentences.busy_timeout, timeout=timeout, waits=least > 0, opened_with=changed)


# Settings of connections to a server, and findings on unwise settings.


def _server_connections(group: Group) -> Iterator[str]:
    lines = [(_session(traits), count) for traits, count in _kinds(group, SESSION)]
    yield from _lines("Settings of your connections (as read from PostgreSQL at the end): ", lines)
    begins = _kinds(group, BEGINS)
    if begins and not lines:
        yield (
            "The settings of your connections to PostgreSQL are unknown: no psycopg connection was open and "
            f"idle at the end. A session begins with {_session(begins[0][0])}."
        )


def _session(traits: Traits) -> str:
    limits = [(name, traits[name]) for name in ("lock_timeout", "statement_timeout") if name in traits]
    parts = [
        f"synchronous_commit={traits.get('synchronous_commit', '')}",
        traits.get("isolation", ""),
        *(f"{name} {'none' if limit == '0' else limit}" for name, limit in limits),
        f"autocommit {traits['autocommit']}" if "autocommit" in traits else "",
        f"in {traits.get('database', '')}" if traits.get("database") != HERE else "",
    ]
    return shortened(", ".join(filter(None, parts)), _LONGEST)


def session_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each unwise setting of connections to a PostgreSQL server."""
    kinds = [traits for traits, _ in _kinds(group, SESSION)]
    here = [traits for traits in kinds if traits.get("database") == HERE]
    if any(traits.get("synchronous_commit") == "off" for traits in here):
        yield Finding(sentences.synchronous_off, server=True)
    other_names = dict.fromkeys(traits.get("database", "") for traits in kinds if traits not in here)
    if other_names:
        yield Finding(
            sentences.other_databases, names=[shortened(name, 80) for name in other_names][:3], server=True
        )
    settings = {tuple(map(traits.get, ("synchronous_commit", "isolation"))) for traits in here}
    if len(settings) > 1:
        yield Finding(sentences.settings_differ, kinds=len(settings), server=True)


# Findings on exceptions of the application's transactions, and on threads that did not end.


_MEANINGS = {
    "SQLSTATE 40001": "Others changed what it had read: retry the whole transaction.",
    "SQLSTATE 40P01": "Each waited for a lock of another: retry the whole transaction.",
    "SQLSTATE 55P03": "A lock was not available, at once or after lock_timeout.",
    PENDING_ROLLBACK: (
        "An earlier statement of the session failed, and the code went on without a rollback. Call "
        "session.rollback() where it catches the error, or put the statement into session.begin_nested()."
    ),
    BROKEN_TRANSACTION: (
        "A statement in an atomic block failed, and the code caught the error within the block. Put the "
        "statement into a transaction.atomic() of its own, and catch the error outside of that."
    ),
}
"""Sentences on cause and remedy of errors of PostgreSQL and libraries, by error name."""


def _exception(sighting: Sighting) -> tuple[str, str, str]:
    return sighting.what, sighting.traits.get("raised", ""), sighting.traits.get("transaction", "")


def raised(group: Group, cause: str | None = None) -> Iterator[Finding]:
    """Yield a finding for each kind of exception with its first message, the most frequent first.

    Exceptions are omitted if findings on failed statements explain them. `cause` is a text on cause and
    remedy of failed migrations; None if the cause is unknown.
    """
    explained = explained_errors(group)
    counts = count_by_kind(group, EXCEPTION, _exception)
    kinds = {kind: count for kind, count in counts.items() if kind[0] not in explained}
    examples = {
        _exception(sighting): sighting.example for sighting in reversed(list(sightings(group, EXCEPTION)))
    }
    given: set[str | None] = set()
    for kind, count in list(kinds.items())[:MAX_KINDS]:
        what, raised, transaction = kind
        explanation = _explanation(what) or (cause if is_migration(examples[kind]) else None)
        failures = (
            failure
            for failure in failures_of(group.runs)
            if (failure.kind, failure.error) == (transaction, what)
        )
        time = failure_time_of(failures, None)
        yield Finding(
            sentences.raised,
            time=time,
            share=_share(group, transaction, time.failures) if time else None,
            explanation=None if explanation in given else explanation,
            transaction=transaction,
            what=what,
            kind=None if raised == what else raised,
            count=count,
            example=examples[kind].removesuffix("."),
        )
        given.add(explanation)
    if len(kinds) > MAX_KINDS:
        yield _more_kinds(len(kinds) - MAX_KINDS)


def _more_kinds(count: int) -> Finding:
    return Finding(shared.more_in_json, count=count, what="kind", of="exceptions")


def _share(group: Group, transaction: str, count: int) -> float:
    failed = sum(failure.latency.count for failure in failures_of(group.runs) if failure.kind == transaction)
    done = sum(
        worker.operations.get(transaction, 0)
        for run in group.runs
        for trial in run.all_valid
        for worker in trial.workers
    )
    return count / (failed + done)


def _explanation(what: str) -> str | None:
    """Return cause and remedy of the error `what`; None if its name does not show the cause."""
    code = code_in(what)
    cause = diagnose(code, Facts()).cause if code is not None else None
    return f"{cause.cause} {cause.advice}" if cause else _MEANINGS.get(what)


def call_cost_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on transactions whose calls take long to open connections, or commit many times."""
    opening: Mapping[str, str] = {}
    costs: dict[str, dict[str, float]] = {}
    for sighting in sightings(group, CALL_COST):
        opening = sighting.traits if "objects" in sighting.traits else opening
        cost = costs.setdefault(sighting.what, dict.fromkeys(("calls", *_COSTS), 0.0))
        cost["calls"] += sighting.count
        for name in _COSTS:
            cost[name] += float(sighting.traits[name])
    syncs = _syncs_commits(group)
    for call, cost in costs.items():
        calls = max(1.0, cost["calls"])
        share, connections = _opening_share(cost, opening), cost["connections"] / calls
        opens = share >= MIN_OPENING_SHARE and connections >= MIN_OPENINGS
        commits = cost["commits"] / calls if syncs else 0.0
        if opens or commits >= MIN_COMMITS:
            yield Finding(
                sentences.call_cost,
                call=call,
                connections=connections if opens else None,
                share=share if opens else None,
                objects=int(opening["objects"]) if opens else None,
                commits=commits if commits >= MIN_COMMITS else None,
            )


def _opening_share(cost: Mapping[str, float], opening: Mapping[str, str]) -> float:
    """Return the share of the calls' time spent on opening connections, from 0 to 1; 0 if unknown.

    The measured time in `cost` includes a connection's first statement, which may be slow itself. So its time
    counts only as far as the whole is at most OPENING_EXCESS times the opening time in `opening`, which was
    measured after the load.
    """
    if not opening or not cost["seconds"]:
        return 0.0
    most_s = OPENING_EXCESS * float(opening["least_opening_s"]) * cost["connections"]
    certain_s = cost["opening_s"] - cost["first_s"]
    return min(1.0, max(certain_s, min(cost["opening_s"], most_s)) / cost["seconds"])


def _syncs_commits(group: Group) -> bool:
    """Return whether a connection syncs each commit to disk; True if no settings are known."""
    settings = [traits for traits, _ in _committers(_kinds(group, CONNECTION))]
    return not settings or any(
        traits.get("synchronous") in ("full", "extra")
        or (traits.get("synchronous") == "normal" and traits.get("journal_mode") != "wal")
        for traits in settings
    )


def error_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on exceptions that ended threads, and on logged errors."""
    for topic in (THREAD_RAISED, LOGGED):
        kinds = count_by_kind(group, topic, _unraised_kind)
        examples = {
            _unraised_kind(sighting): sighting.example for sighting in reversed(list(sightings(group, topic)))
        }
        for kind, count in list(kinds.items())[:MAX_KINDS]:
            what, of = kind
            yield Finding(
                sentences.unraised,
                what=what,
                of=None if of == what else of,
                count=count,
                logged=topic == LOGGED,
                example=examples[kind],
            )
        if len(kinds) > MAX_KINDS:
            yield _more_kinds(len(kinds) - MAX_KINDS)


def _weight(share: float) -> str:
    """Return a transaction's share of the calls as a percentage; "99.6%" is not rounded to "100%"."""
    return percent(share) if share < 0.99 or share == 1 else f"{100 * share:.3g}%"


def _unraised_kind(sighting: Sighting) -> tuple[str, str]:
    return sighting.what, sighting.traits.get("raised", "") or sighting.traits.get("logger", "")


def starved(group: Group) -> Iterator[Finding]:
    """Yield findings on processes that did less than their share, or waited long for a lock."""
    # Shares in a single window may be uneven by chance, so the longer window does not count.
    group = replace(group, runs=tuple(replace(run, longer=None) for run in group.runs))
    return starvation(group, lambda cases: shorter_transactions(group, cases))


def thread_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding if threads kept the worker processes from exiting."""
    threads = list(sightings(group, THREAD))
    if threads:
        names = sorted({thread.what for thread in threads})
        yield Finding(
            sentences.thread_did_not_end, count=sum(thread.count for thread in threads), names=names
        )


long_hold_findings = partial(lock_findings, ours=LOCK_HOLDERS)
"""Function that yields findings on long holds of the write lock."""


def _wal_findings(group: Group) -> Iterator[Finding]:
    # Automatic checkpoints count as off only if every connection that commits has turned them off.
    committers = _committers(_kinds(group, CONNECTION))
    frames = {traits.get("wal_autocheckpoint") for traits, _ in committers}
    yield from wal_findings(group, is_automatic=frames != {"0"})


class AppShown(UserPresenter):
    """Presenter of the results of app: tables and findings."""

    topics: ClassVar[tuple[Topic, ...]] = (
        lock_losses,
        open_findings,
        overlap_findings,
        split_findings,
        schema_change_findings,
        no_effect_findings,
        memory_findings,
        own_hold_findings,
        backup_findings,
        unclosed_findings,
        passed_over_findings,
        repeat_findings,
        failure_findings,
        suspicion_findings,
        _wal_findings,
        raised,
        error_findings,
        setting_findings,
        lone_step_findings,
        session_findings,
        call_cost_findings,
        isolation_findings,
        throughput_findings,
        rate_findings,
        long_hold_findings,
        starved,
        thread_findings,
        partial_proofs,
        figure_limits,
    )
    failed: ClassVar[Column[Row]] = FAILED_SHARE.explained(["failed: percentage of transactions that raised"])

    def columns(self, group: Group) -> Sequence[Column[Row]]:
        if group.case.spec.situation:
            from sqlstress.experiments.app import openings_view

            return openings_view.columns(group)
        return super().columns(group)

    def findings(self, group: Group) -> Iterator[Finding]:
        if group.case.spec.situation:
            from sqlstress.experiments.app import openings_view

            explained = partial(raised, cause=openings_view.migration_cause(group))
            return openings_view.findings(group, (explained, setting_findings))
        return super().findings(group)

    def rate(self, run: Run) -> float | None:
        return None if run.case.spec.situation else super().rate(run)

    def plots(self, group: Group) -> Iterator[Plot]:
        return iter(()) if group.case.spec.situation else super().plots(group)

    def failure_reason(self, run: Run) -> str:
        kinds = Counter[tuple[str, str]]()
        for trial in run.all_valid:
            for sighting in trial.sightings:
                if sighting.topic == EXCEPTION:
                    kinds[sighting.traits.get("transaction", ""), sighting.what] += sighting.count
        if not kinds:
            return "they raised exceptions"
        (transaction, what), _ = kinds.most_common(1)[0]
        more = f", and {plural(len(kinds) - 1, 'more kind')}" if len(kinds) > 1 else ""
        return f"{transaction} raised {what}{more}"

    def work(self, case: Case) -> str:
        transactions = case.spec.transactions
        total = sum(transaction.weight for transaction in transactions)
        shares = (f"{transaction.name} {_weight(transaction.weight / total)}" for transaction in transactions)
        alone = len(transactions) == 1
        ledger = ", with a ledger" * case.spec.ledger
        return f"{case.spec.file}: {transactions[0].name if alone else ', '.join(shares)}{ledger}"

    def more_blocks(self, group: Group) -> Iterator[Block]:
        yield from super().more_blocks(group)
        yield from failure_blocks(group)
        yield from lock_holder_blocks(group, LOCK_HOLDERS)
        if group.case.spec.situation:
            from sqlstress.experiments.app import openings_view

            yield Paragraph(openings_view.ALONE_BEFORE)

    def blocks(self, group: Group) -> Iterator[Block]:
        yield from super().blocks(group)
        for text in (*_file_connections(group), *_server_connections(group)):
            yield Paragraph(text)
