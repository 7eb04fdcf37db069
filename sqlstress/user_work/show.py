"""How the user's own work is shown: a row for each number of processes, latencies by kind of operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, ClassVar, TypeVar

from sqlstress.analysis import sentences
from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.failed import Wait, shares_by_kind, wait_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic, longest_wait_ns
from sqlstress.analysis.lock_samples import LONG_S, length, share, share_error
from sqlstress.analysis.scaling import starvation, tally, throughput, waits
from sqlstress.analysis.sentences import Step
from sqlstress.analysis.wording import duration, listing, percent, place, places
from sqlstress.report import Latency, Run
from sqlstress.report.case import ISOLATIONS, Case
from sqlstress.report.results import Holder, Holds, Sighting, WriteLock, merged
from sqlstress.show import case_table
from sqlstress.show.at_a_rate import RATE, at_a_rate
from sqlstress.show.blocks import (
    NAME,
    PERCENTILES,
    VERIFIED,
    Block,
    Column,
    Legend,
    Note,
    Paragraph,
    Value,
    count_cell,
    ms_cell,
    percent_cell,
    seconds_cell,
    shortened,
    table_of,
    verified_cell,
    verified_legend,
)
from sqlstress.show.shown import LoadShown
from sqlstress.statistics.units import NS_PER_S, format_duration, plural
from sqlstress.target import product
from sqlstress.user_work import AFTER, OURS, SUSPICION, UNDER, UNKNOWN, UNREHEARSED
from sqlstress.user_work.options import Data
from sqlstress.user_work.suspicions import DEFERRED, FORKED, GUARDED, MIXED, STALE, STALE_COPY, WEAK

K = TypeVar("K")

HELD = "every check passed"
NO_CHECK = "no check"
_LONGEST_KIND = 34

# What was proved.


def _is_checked(run: Run) -> bool:
    """Return whether the user said what must be true of the data of a run."""
    proofs = (check for check in run.verdict.checks if check.status != "skipped")
    return any(check.name == AFTER for check in proofs)


def _has_checks(group: Group) -> bool:
    """Return whether the user said so of a group, as far as it was found right."""
    right = [run for run in group.runs if run.verdict.status == "ok"]
    return not right or any(map(_is_checked, right))


def _checked_cell(row: case_table.Row) -> str | None:
    """Return what is said of a run: "ok" only where something was checked that SQLite does not know."""
    run = row.run
    return verified_cell(run) if _is_checked(run) or run.verdict.status != "ok" else NO_CHECK


CHECKED: Column[case_table.Row] = Column(VERIFIED.name, VERIFIED.heading, VERIFIED.align, cell=_checked_cell)


def checked_legend(group: Group) -> Iterator[str]:
    """Yield what the words in that column mean."""
    return verified_legend(group, proved(group), "ok" if _has_checks(group) else NO_CHECK)


def proved(group: Group) -> str:
    """Return what was proved where all is well; of a store that did not look at its own data, no word."""
    right = [run for run in group.runs if run.verdict.status == "ok"]
    unseen = {product(run.case.driver) for run in right if not run.verdict.is_sound}
    looked = [one for one in dict.fromkeys(product(run.case.driver) for run in right) if one not in unseen]
    if not _has_checks(group):
        whose = listing([f"{one}'s" for one in looked]) or "the store's"
        return f"no check was given, so only {whose} own consistency was verified"
    find = "find" if len(looked) > 1 else "finds"
    return f"{HELD}{f', and {listing(looked)} {find} no error' if looked else ''}"


# A row for each number of processes.


def _operations_of(run: Run) -> list[str]:
    """Return the kinds that are whole operations, not parts of them."""
    return list(
        dict.fromkeys(kind for trial in run.valid for one in trial.workers for kind in one.operations)
    )


def _time(row: case_table.Row) -> str | None:
    """Return how long a fixed amount of work took; a window's length stands in the heading."""
    return seconds_cell(row.trial.seconds) if row.trial and row.run.case.ops is not None else None


def _only(percentile: str) -> case_table.Cell:
    """Return the cell of a percentile of a run whose operations are of one kind."""

    def cell(row: case_table.Row) -> str | None:
        kinds = _operations_of(row.run)
        latency = row.run.latency(kinds[0]) if len(kinds) == 1 and row.trial else None
        return ms_cell(getattr(latency.without_single_events(), percentile)) if latency else None

    return cell


def _answers(name: str) -> case_table.Cell:
    """Return the cell of how many answers of a kind came in a second, where any did."""

    def cell(row: case_table.Row) -> str | None:
        counts = [(getattr(trial, name) or 0) / trial.seconds for trial in row.run.valid if trial.seconds > 0]
        return count_cell(median(counts)) if any(counts) else None

    return cell


def _columns(group: Group, failed: Column[case_table.Row]) -> tuple[Column[case_table.Row], ...]:
    """Return the columns of a group's table. `failed` is the column of failed transactions."""
    busy = "a lock was not available"
    snapshot = "a transaction cannot write because its snapshot is out of date"
    if any(run.case.server for run in group.runs):
        busy = "unavailable locks, and deadlocks"
        snapshot = "a snapshot is out of date; on a server, a serialization failure"
    took = f"{PERCENTILES} of the transactions took at most this long"
    return (
        *case_table.apart_columns(group),
        case_table.PROCESSES,
        Column("time s", cell=_time),
        case_table.TOTAL.explained(["TPS: transactions per second", *case_table.spread_legend(group)]),
        Column("p50 ms", cell=_only("p50_ns"), meaning=took),
        Column("p99 ms", cell=_only("p99_ns"), meaning=took),
        Column("BUSY/s", ("BUSY", "per s"), cell=_answers("busy"), meaning=f"BUSY: {busy}", leaves=95),
        Column(
            "BUSY_SNAPSHOT/s",
            ("BUSY_SNAP-", "SHOT per s"),
            cell=_answers("busy_snapshot"),
            meaning=f"BUSY_SNAPSHOT: {snapshot}",
        ),
        failed,
        case_table.FAIRNESS,
        case_table.LONGEST_WAIT.explained(
            ["longest wait: the slowest transaction, including one still pending at the end"]
        ),
        CHECKED.explained(checked_legend(group)),
    )


# A row for each kind of operation, where a run has several.


@dataclass(frozen=True, slots=True)
class KindRow(case_table.Row):
    """A kind of operation of a run."""

    kind: str
    latency: Latency | None
    """At a rate from when an operation was due; of parts of operations, and otherwise, from its begin."""


def _latencies(group: Group) -> Iterator[Block]:
    rows = [
        KindRow(run, trial, kind, _from_due(run, kind) or run.latency(kind))
        for run, trial in group.measured()
        if len(kinds := dict.fromkeys(kind for trial in run.valid for kind in trial.latency)) > 1
        for kind in kinds
    ]
    if rows:
        yield table_of(rows, (*case_table.apart_columns(group), *_OF_KINDS))
        if group.case.rate:
            has_parts = any(row.kind not in _operations_of(row.run) for row in rows)
            parts = ", as for all parts of operations" if has_parts else ""
            yield Note(f"Each from its due time; service: from its start{parts}.")


def _from_due(run: Run, kind: str) -> Latency | None:
    """Return the latencies of a kind from the moment each was due; None in a closed loop."""
    found = [one.arrived.latency.get(kind) for one in run.valid if one.arrived]
    return merged([one for one in found if one and one.count])


def _per_s(row: KindRow) -> str | None:
    """Return how many a second were done, as the median over the trials."""
    rates = [
        (latency.count if (latency := trial.latency.get(row.kind)) else 0) / trial.seconds
        for trial in row.run.valid
        if trial.seconds > 0
    ]
    return count_cell(median(rates)) if rates else None


def _failed_of(row: KindRow) -> str | None:
    """Return the share of failed operations of a kind."""
    share = shares_by_kind([row.run]).get(row.kind)
    return percent_cell(share) if share else None


def _service(row: KindRow) -> str | None:
    latency = row.run.latency(row.kind) if row.run.case.rate else None
    return ms_cell(latency.without_single_events().p99_ns) if latency else None


def _of_kind(name: str, field: str, leaves: int | None = None) -> Column[KindRow]:
    def cell(row: KindRow) -> str | None:
        return ms_cell(getattr(row.latency.without_single_events(), field)) if row.latency else None

    return Column(f"{name} ms", cell=cell, leaves=leaves)


_OF_KINDS: tuple[Column[KindRow], ...] = (
    Column("kind", ("", "what"), "left", NAME, lambda row: shortened(row.kind, _LONGEST_KIND)),
    case_table.PROCESSES,
    RATE,
    Column("per s", ("", "per s"), cell=_per_s),
    _of_kind("p50", "p50_ns", leaves=30),
    _of_kind("p90", "p90_ns", leaves=10),
    _of_kind("p99", "p99_ns"),
    _of_kind("p99.9", "p999_ns", leaves=20),
    _of_kind("max", "max_ns"),
    Column("failed %", cell=_failed_of),
    Column("service p99 ms", ("service", "p99 ms"), cell=_service),
)


# What others in the way did: starvation, transactions given up, or begun again.


_SAFE_AT_SERVER = (
    "SELECT ... FOR UPDATE to wait for them, or --isolation repeatable-read or serializable to refuse them"
)


def too_weak(group: Group) -> Iterator[Finding]:
    """Say of checks that failed at a server's weakest level what that level lets happen."""
    if any(_fails(run) and _is_weakest(run) for run in group.runs):
        yield Finding(sentences.read_committed, ways=_SAFE_AT_SERVER)


def _is_weakest(run: Run) -> bool:
    """Return whether transactions ran at the weakest level: what was read back says so, or what was asked."""
    if not run.case.server:
        return False
    levels = [level for one in run.trials if (level := one.effective.get("transaction_isolation"))]
    return any(ISOLATIONS[0] in level.replace(" ", "-") for level in levels or [run.case.server.isolation])


def _fails(run: Run) -> bool:
    return any(check.name.startswith("checks ") and check.status == "failed" for check in run.verdict.checks)


def waiting(group: Group) -> Iterator[Finding]:
    """Yield what waiting did to the runs of a group."""
    if group.case.server:
        yield from too_weak(group)
    refused, where = tally(group, lambda trial: trial.busy_snapshot)
    if group.case.server:
        locked, also = tally(group, lambda trial: trial.busy)
        if refused or locked:
            cases = places([*where, *also])
            yield Finding(sentences.refused, where=cases, refused=refused, locked=locked, retried=False)
        yield from starvation(group)
    else:
        if refused:
            yield Finding(sentences.busy_snapshot, count=refused, where=places(where))
        yield from starvation(group, lambda cases: shorter_transactions(group, cases))


def shorter_transactions(group: Group, cases: Sequence[Case]) -> str | None:
    """Return shorter transactions as the remedy, if a hold of the write lock explains the longest wait.

    Where a CPU quota stopped the processes, with or without the lock, the remedy is a higher quota.
    """
    if group.met_quota:
        return "Try a higher CPU quota or fewer processes."
    runs = [run for run in group.runs if run.case in cases]
    longest_s = max((holder.held.longest_s for run in runs for holder in holders_of(run)), default=0.0)
    waited_s = max(map(longest_wait_ns, runs), default=0) / NS_PER_S
    if longest_s < max(LONG_S, waited_s / 2):
        return None
    kept = duration(longest_s * NS_PER_S)
    return f"One transaction kept the write lock for {kept}: try shorter transactions."


def given_up(group: Group) -> Iterator[Finding]:
    """Yield how many transactions failed because the database was locked, after which time, and the cure."""
    number, cases = tally(group, lambda trial: trial.failed)
    if not number:
        return
    most = max(group.runs, key=Run.failed_share)
    facts: dict[str, Any] = {
        "count": number,
        "where": places(cases),
        "share": most.failed_share(),
        "most": place(most.case) if len(cases) > 1 else None,
    }
    if group.case.server:
        yield Finding(sentences.transactions_refused, **facts)
    else:
        wait = wait_of(group, group.case.settings.busy_timeout_ms)
        shares = shares_by_kind(group.runs)
        reads_first = any(each.what == DEFERRED for each in sighted(group).values())
        yield Finding(
            sentences.given_up,
            **facts,
            what="transaction",
            time=wait.failure_time() if wait else None,
            shares=shares if len(group.case.spec.scripts) > 1 else None,
            remedy=cure(wait, reads_first=reads_first) if wait else None,
        )


def cure(wait: Wait, *, reads_first: bool) -> str | None:
    """Return the cure for failures with BUSY; None if the cause was not measured.

    `reads_first`: whether a deferred transaction was seen to read before it writes.
    """
    if wait.timeout_ms is None:
        return None
    if not wait.timeout_ms:
        return "Set a busy timeout on every connection."
    if wait.waited_count:
        return "Try a longer timeout, or find what holds the lock for so long."
    if not wait.is_at_once:
        return None
    return READS_FIRST if reads_first else "A longer timeout does not help."


READS_FIRST = "A transaction reads before it writes, so SQLite does not wait: use BEGIN IMMEDIATE."
"""Cause and cure of a failure that no timeout prevents."""


# What the workers of programs tell of.


def sightings(group: Group, topic: str) -> Iterator[Sighting]:
    """Yield what the workers of all trials told of under a topic."""
    trials = (trial for run in group.runs for trial in run.trials)
    return (one for trial in trials for one in trial.sightings if one.topic == topic)


def counted(group: Group, topic: str, kind: Callable[[Sighting], K]) -> dict[K, int]:
    """Return how often each kind came, the commonest first."""
    counts: dict[K, int] = {}
    for one in sightings(group, topic):
        counts[kind(one)] = counts.get(kind(one), 0) + one.count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


class UserShown(LoadShown):
    """An experiment inherits from it, and says what its processes do."""

    topics: ClassVar[tuple[Topic, ...]] = (
        given_up,
        throughput,
        at_a_rate,
        waits,
        waiting,
        partial_proofs,
        trust,
    )
    proves = HELD
    failed: ClassVar[Column[case_table.Row]] = case_table.FAILED_SHARE.explained(
        ["failed: percentage of transactions given up because the database was busy"]
    )
    together = 3
    measures = ((case_table.TPS, case_table.RATIO), (case_table.SPREAD,), case_table.SCALING)

    def is_doubtful(self, run: Run) -> bool:
        suspicious = (
            one.topic == SUSPICION and one.what not in WEAK for trial in run.trials for one in trial.sightings
        )
        return getattr(run.case.spec, "strict", False) and any(suspicious)

    def work(self, case: Case) -> str:
        """Return what the processes of a case do, as the beginning of a sentence."""
        return case.workload

    def what(self, group: Group) -> str:
        data = group.case.spec.data
        said = list(dict.fromkeys(self.work(run.case) for run in group.runs))
        if made := list(filter(None, (data.database and f"a copy of {data.database}", data.setup))):
            said.append(f"database: {' and '.join(made)}")
        late = sum(one.at_end for one in data.checks)
        if always := len(data.checks) - late:
            said.append(f"{plural(always, 'check')} before, during and after")
        if late:
            said.append(f"{plural(late, 'check')} at the end")
        return "; ".join(said)

    def closed_loop_table(self, group: Group) -> Iterator[Block]:
        yield from case_table.blocks(group)
        table = table_of(case_table.rows_of(group), _columns(group, self.failed))
        yield table
        yield Legend(table)

    def more_blocks(self, group: Group) -> Iterator[Block]:
        return _latencies(group)

    def proved(self, group: Group) -> str:
        return proved(group)

    def loads(self, cases: Sequence[Case]) -> list[str]:
        return list(map(self.work, cases))

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        def column(figure: Callable[[Data], Value]) -> Callable[[Run], Value]:
            return lambda run: figure(data) if (data := getattr(run.case.spec, "data", None)) else None

        return {
            "setup": column(lambda data: data.setup),
            "database": column(lambda data: data.database),
            "checks": column(lambda data: len(data.checks)),
        }


# Who held the write lock of the trials' databases: a row for each program, all passes together.


MOST_PROGRAMS = 5
"""Programs of a case that are shown; the JSON report has them all."""
_PROGRAM_WIDTH = 40
_UNKNOWN = "(ended, or not visible here)"


@dataclass(frozen=True, slots=True)
class HolderRow(case_table.Row):
    """A program, and how it held the write lock in all passes of a run."""

    holder: Holder
    share: float
    """Of all samples."""
    rate: int
    """Samples per second."""


def lock_blocks(group: Group, ours: str) -> Iterator[Block]:
    """Yield who held the lock; nothing where nobody asked. `ours` is what sqlstress's own processes do."""
    rows = [
        HolderRow(run, trial, holder, share(holder.held.samples, _samples(run)), locks[0].rate)
        for run, trial in group.measured()
        if (locks := locks_of(run))
        for holder in holders_of(run)[:MOST_PROGRAMS]
    ]
    if not rows:
        return
    yield Paragraph("Who held the write lock, in percent of the time, all passes together:")
    name = Column[HolderRow](
        "program",
        align="left",
        role=NAME,
        cell=lambda row: shortened(_called(row.holder, ours), _PROGRAM_WIDTH),
    )
    yield table_of(rows, (*case_table.apart_columns(group), case_table.PROCESSES, name, *_LOCK_COLUMNS))
    samples = min(_samples(row.run) for row in rows)
    yield Note(
        f"Shares may be wrong by up to {percent(share_error(samples))} of the time (95%, "
        f"{plural(samples, 'sample')} from outside); holds shorter than {format_duration(1 / rows[0].rate)} "
        "can be missed. longest: seen without a break and without a commit."
    )


def _called(holder: Holder, ours: str) -> str:
    return {OURS: ours, UNKNOWN: _UNKNOWN}.get(holder.program, holder.program)


_LOCK_COLUMNS: tuple[Column[HolderRow], ...] = (
    Column("write lock %", ("write", "lock %"), cell=lambda row: percent_cell(row.share)),
    Column("longest ms", cell=lambda row: _longest(row.holder.held, row.rate)),
)


def _longest(held: Holds, rate: int) -> str:
    longest = length(held, rate)
    return f"{'<' if longest.is_bound else ''}{ms_cell(longest.ns)}"


def locks_of(run: Run) -> list[WriteLock]:
    """Return what was seen in the valid trials of a run."""
    return [trial.write_lock for trial in run.valid if trial.write_lock]


def _samples(run: Run) -> int:
    return sum(lock.samples for lock in locks_of(run))


def holders_of(run: Run) -> list[Holder]:
    """Return who held the lock in all valid trials of a run, first who was seen most often."""
    found: dict[str, Holder] = {}
    for lock in locks_of(run):
        for one in lock.holders:
            known = found.get(one.program)
            found[one.program] = _together(known, one) if known else one
    return sorted(found.values(), key=lambda one: -one.held.samples)


def _together(one: Holder, other: Holder) -> Holder:
    longer = max(one.held, other.held, key=lambda held: (held.longest_s, held.most_s))
    held = replace(
        longer,
        samples=one.held.samples + other.held.samples,
        times=one.held.times + other.held.times,
    )
    return replace(one, processes=one.processes + other.processes, held=held)


def lock_findings(group: Group, ours: str) -> Iterator[Finding]:
    """Yield who kept others from writing for long, and where nobody was seen, or not to the end."""
    for run in group.runs:
        locks, where = locks_of(run), group.place(run.case)
        if reason := next((lock.error for lock in locks if lock.error), ""):
            yield Finding(sentences.lock_watch_ended, where=where, reason=reason.removesuffix("."))
        if locks and not any(lock.held.samples for lock in locks):
            yield Finding(sentences.lock_not_seen, where=where, samples=_samples(run))
    holders = [(one, run) for run in group.runs for one in holders_of(run) if one.program != UNKNOWN]
    for one, run in sorted(holders, key=lambda pair: -pair[0].held.longest_s)[:1]:
        if one.held.longest_s >= LONG_S:
            holder = f"at {group.place(run.case)}, {_called(one, ours)}"
            yield Finding(sentences.long_write, holder=holder, longest_ns=one.held.longest_s * NS_PER_S)


# What is said of suspicions: as the cause beside wrong data, as what was found where no check was given.


CODES = (STALE, STALE_COPY, GUARDED, MIXED, FORKED, DEFERRED, *WEAK)
_LONGEST_WORD = 120
MOST_SUSPICIONS = 3
"""Suspicions that are told; the JSON report has them all."""


def suspected(group: Group) -> Iterator[Finding]:
    """Yield the suspicions of a group, each once; or why none were looked for."""
    unexamined: dict[str, dict[str, None]] = {}
    for one in sightings(group, UNREHEARSED):
        unexamined.setdefault(one.what, {})[one.traits.get("transaction", "")] = None
    for why, transactions in unexamined.items():
        yield Finding(sentences.not_rehearsed, why=why, transactions=[*filter(None, transactions)])
    found = [one for one in sighted(group).values() if one.what in CODES]
    found.sort(key=lambda one: one.what in WEAK)
    checks = [check for run in group.runs for check in run.verdict.checks if check.name in (UNDER, AFTER)]
    failed = any(check.status == "failed" for check in checks)
    for one in found[:MOST_SUSPICIONS]:
        first, then = _step(one, "first"), _step(one, "then")
        if one.what == DEFERRED:
            yield Finding(sentences.deferred_upgrade, first=first, then=then)
            continue
        yield Finding(
            sentences.suspicion,
            kind=one.what,
            transaction=_trait(one, "transaction"),
            table=_trait(one, "table"),
            first=first,
            then=then,
            failed=failed,
            held=bool(checks) and not failed,
        )
    if len(found) > MOST_SUSPICIONS:
        yield Finding(sentences.more_in_json, count=len(found) - MOST_SUSPICIONS, what="suspicion")


def _step(suspicion: Sighting, name: str) -> Step:
    return Step(_trait(suspicion, name), _trait(suspicion, f"{name}_at"))


def _trait(suspicion: Sighting, name: str) -> str:
    return shortened(suspicion.traits.get(name, ""), _LONGEST_WORD)


def sighted(group: Group) -> dict[tuple[str, ...], Sighting]:
    """Return the first suspicion of each kind about each table: the trials have those of one rehearsal."""
    found: dict[tuple[str, ...], Sighting] = {}
    for one in sightings(group, SUSPICION):
        found.setdefault((one.what, one.traits.get("transaction", ""), one.traits.get("table", "")), one)
    return found
