"""Report of experiments that run the user's own work: tables and findings.

A run has the results of one case. A run is correct if its verdict is "ok": no check found an error. A group
is the set of runs that the report shows in a single table. Its main table has a row per number of processes.
A second table shows latencies by kind of operation: a transaction or, in SQL scripts, also a single
statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar, TypeVar

from sqlstress.analysis import sentences
from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.failed import failure_time_of, failures_of, shares_by_kind
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic, longest_wait_ns, sightings
from sqlstress.analysis.lock_samples import MIN_LONG_HOLD_S
from sqlstress.analysis.scaling import starvation, tally, throughput_findings
from sqlstress.analysis.wording import FailureTime, duration, listing, place, places
from sqlstress.races.suspicions import DEFERRED, NOTES_ONLY
from sqlstress.report import Latency, Run
from sqlstress.report.case import ISOLATIONS, Case
from sqlstress.report.results import Sighting, merged
from sqlstress.show import case_table
from sqlstress.show.at_a_rate import RATE, rate_findings
from sqlstress.show.blocks import (
    NAME,
    PERCENTILES,
    VERIFIED,
    Block,
    Column,
    Note,
    Value,
    count_cell,
    percent_cell,
    seconds_cell,
    shortened,
    table_of,
    verified_cell,
    verified_legend,
)
from sqlstress.show.shown import LoadShown
from sqlstress.sqlite_codes import BUSY_SNAPSHOT, name
from sqlstress.statistics.units import NS_PER_S, plural
from sqlstress.target import reported
from sqlstress.user_work import AFTER, ORDERS, SUSPICION
from sqlstress.user_work.failures_view import explained_errors
from sqlstress.user_work.lock_holders_view import merged_holders
from sqlstress.user_work.options import Data
from sqlstress.user_work.suspicions_view import first_suspicions

K = TypeVar("K")

CHECKS_PASSED = "every check passed"
NO_CHECK = "no check"
_LONGEST_KIND = 34

# Results of the user's checks. Each check is a query or a function that tests the data.


def _is_checked(run: Run) -> bool:
    proofs = (check for check in run.verdict.checks if check.status != "skipped")
    return any(check.name == AFTER for check in proofs)


def _has_checks(group: Group) -> bool:
    """Return whether the user's checks ran in any correct run; True if there is no correct run."""
    right = [run for run in group.runs if run.verdict.status == "ok"]
    return not right or any(map(_is_checked, right))


def _checked_cell(row: case_table.Row) -> str | None:
    run = row.run
    return verified_cell(run) if _is_checked(run) or run.verdict.status != "ok" else NO_CHECK


CHECKED: Column[case_table.Row] = Column(VERIFIED.name, VERIFIED.heading, VERIFIED.align, cell=_checked_cell)


def checked_legend(group: Group) -> Iterator[str]:
    """Yield the meanings of the verdicts in the CHECKED column."""
    return verified_legend(group, proved(group), "ok" if _has_checks(group) else NO_CHECK)


def proved(group: Group) -> str:
    """Return a phrase on the checks that the group's correct runs passed.

    The phrase names a database product only if all its correct runs passed the product's consistency check.
    """
    right = [run for run in group.runs if run.verdict.status == "ok"]
    unseen = {reported(run.case.driver).product for run in right if not run.verdict.is_sound}
    products = dict.fromkeys(reported(run.case.driver).product for run in right)
    stores = [product for product in products if product not in unseen]
    if not _has_checks(group):
        whose = listing([f"{store}'s" for store in stores]) or "the store's"
        return f"no check was given, so only {whose} own consistency was verified"
    find = "find" if len(stores) > 1 else "finds"
    return f"{CHECKS_PASSED}{f', and {listing(stores)} {find} no error' if stores else ''}"


# The main table of a group, with a row per number of processes: its cells and columns.


def _operations_of(run: Run) -> list[str]:
    """Return the names of the transactions or SQL scripts that ran, without statements of scripts."""
    return list(
        dict.fromkeys(kind for trial in run.valid for worker in trial.workers for kind in worker.operations)
    )


def _time(row: case_table.Row) -> str | None:
    return seconds_cell(row.trial.seconds) if row.trial and row.run.case.ops is not None else None


def _single_latency(row: case_table.Row) -> Latency | None:
    kinds = _operations_of(row.run)
    return case_table.kind_latency(kinds[0])(row) if len(kinds) == 1 else None


def _errors_per_s(name: str) -> case_table.Cell:
    """Return the function that makes a cell with the number of errors per second.

    `name` is the field of a trial that counts these errors, such as "busy".
    """

    def cell(row: case_table.Row) -> str | None:
        counts = [(getattr(trial, name) or 0) / trial.seconds for trial in row.run.valid if trial.seconds > 0]
        return count_cell(median(counts)) if any(counts) else None

    return cell


def _columns(group: Group, failed: Column[case_table.Row]) -> tuple[Column[case_table.Row], ...]:
    """Return the columns of the main table. `failed` is the column of failed transactions."""
    busy = "a lock was not available"
    snapshot = "a transaction cannot write because its snapshot is out of date"
    if any(run.case.server for run in group.runs):
        busy = "unavailable locks, and deadlocks"
        snapshot = "a snapshot is out of date; on a server, a serialization failure"
    took = f"{PERCENTILES} of the transactions took at most this long"
    return (
        *case_table.setting_columns(group),
        case_table.PROCESSES,
        Column("time s", cell=_time),
        case_table.TOTAL.explained(["TPS: transactions per second", *case_table.spread_legend(group)]),
        case_table.percentile_column("p50", _single_latency, meaning=took),
        case_table.percentile_column("p99", _single_latency, meaning=took),
        Column("BUSY/s", ("BUSY", "per s"), cell=_errors_per_s("busy"), meaning=f"BUSY: {busy}", leaves=95),
        Column(
            "BUSY_SNAPSHOT/s",
            ("BUSY_SNAPSHOT", "per s"),
            cell=_errors_per_s("busy_snapshot"),
            meaning=f"BUSY_SNAPSHOT: {snapshot}",
        ),
        failed,
        case_table.FAIRNESS,
        case_table.LONGEST_WAIT.explained(
            ["longest wait: the slowest transaction, including one still pending at the end"]
        ),
        CHECKED.explained(checked_legend(group)),
    )


# The second table of a group, with a row per kind of operation, for runs with several kinds.


@dataclass(frozen=True, slots=True)
class KindRow(case_table.Row):
    """Row of the second table, for one kind of operation."""

    kind: str
    latency: Latency | None
    """Latency of this kind; None if no operation of the kind ran.

    With a fixed rate (--rate), an operation's latency begins at its scheduled start (due time). Otherwise,
    and for a statement of a script, the latency begins at the actual start.
    """


def _latencies(group: Group) -> Iterator[Block]:
    rows = [
        KindRow(run, trial, kind, _latency_from_due_times(run, kind) or run.latency(kind))
        for run, trial in group.measured()
        if len(kinds := dict.fromkeys(kind for trial in run.valid for kind in trial.latency)) > 1
        for kind in kinds
    ]
    if rows:
        yield table_of(rows, (*case_table.setting_columns(group), *_KIND_COLUMNS))
        if group.case.rate:
            has_parts = any(row.kind not in _operations_of(row.run) for row in rows)
            parts = ", as for all parts of operations" if has_parts else ""
            yield Note(f"Each from its due time; service: from its start{parts}.")


def _latency_from_due_times(run: Run, kind: str) -> Latency | None:
    latencies = [trial.arrived.latency.get(kind) for trial in run.valid if trial.arrived]
    return merged([latency for latency in latencies if latency and latency.count])


def _per_s(row: KindRow) -> str | None:
    rates = [
        (latency.count if (latency := trial.latency.get(row.kind)) else 0) / trial.seconds
        for trial in row.run.valid
        if trial.seconds > 0
    ]
    return count_cell(median(rates)) if rates else None


def _failed_of(row: KindRow) -> str | None:
    share = shares_by_kind([row.run]).get(row.kind)
    return percent_cell(share) if share else None


def _service(row: KindRow) -> Latency | None:
    return case_table.kind_latency(row.kind)(row) if row.run.case.rate else None


def _latency_column(percentile: str, leaves: int | None = None) -> Column[KindRow]:
    return case_table.percentile_column(
        percentile, lambda row: row.latency and row.latency.without_single_events(), leaves=leaves
    )


_KIND_COLUMNS: tuple[Column[KindRow], ...] = (
    Column("kind", ("", "what"), "left", NAME, lambda row: shortened(row.kind, _LONGEST_KIND)),
    case_table.PROCESSES,
    RATE,
    Column("per s", ("", "per s"), cell=_per_s),
    _latency_column("p50", leaves=30),
    _latency_column("p90", leaves=10),
    _latency_column("p99"),
    _latency_column("p99.9", leaves=20),
    _latency_column("max"),
    Column("failed %", cell=_failed_of),
    case_table.percentile_column("service p99", _service),
)


# Findings on effects of waiting for locks: starvation, refused transactions, failed transactions.


_SAFE_AT_SERVER = (
    "SELECT ... FOR UPDATE to wait for them, or --isolation repeatable-read or serializable to refuse them"
)


def isolation_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding if checks failed at a server's weakest isolation level, which permits lost updates."""
    if any(_fails(run) and _is_weakest(run) for run in group.runs):
        yield Finding(sentences.read_committed, ways=_SAFE_AT_SERVER)


def _is_weakest(run: Run) -> bool:
    """Return whether a run used the weakest isolation level (read committed) of a server.

    If the workers read the effective level from the server, this level counts, else the requested level.
    """
    if not run.case.server:
        return False
    levels = [level for trial in run.trials if (level := trial.effective.get("transaction_isolation"))]
    return any(ISOLATIONS[0] in level.replace(" ", "-") for level in levels or [run.case.server.isolation])


def _fails(run: Run) -> bool:
    return any(check.name.startswith("checks ") and check.status == "failed" for check in run.verdict.checks)


def waiting(group: Group) -> Iterator[Finding]:
    """Yield findings on refused transactions, processes that got too little work done, and long waits."""
    if group.case.server:
        yield from isolation_findings(group)
    refused, where = tally(group, lambda trial: trial.busy_snapshot)
    if group.case.server:
        locked, also = tally(group, lambda trial: trial.busy)
        if refused or locked:
            cases = places([*where, *also])
            yield Finding(sentences.refused, where=cases, refused=refused, locked=locked, retried=False)
        yield from starvation(group)
    else:
        if refused and name(BUSY_SNAPSHOT) not in explained_errors(group):
            yield Finding(sentences.busy_snapshot, count=refused, where=places(where))
        yield from starvation(group, lambda cases: shorter_transactions(group, cases))


def shorter_transactions(group: Group, cases: Sequence[Case]) -> str | None:
    """Return a remedy for the longest wait in `cases`; None if the cause is unknown.

    If a CPU quota stopped the processes, the remedy is a higher quota. If a program held the write lock for
    at least half of the longest wait, the remedy is shorter transactions.
    """
    if group.met_quota:
        return "Try a higher CPU quota or fewer processes."
    runs = [run for run in group.runs if run.case in cases]
    longest_s = max((holder.held.longest_s for run in runs for holder in merged_holders(run)), default=0.0)
    waited_s = max(map(longest_wait_ns, runs), default=0) / NS_PER_S
    if longest_s < max(MIN_LONG_HOLD_S, waited_s / 2):
        return None
    held = duration(longest_s * NS_PER_S)
    return f"One transaction kept the write lock for {held}: try shorter transactions."


def given_up(group: Group) -> Iterator[Finding]:
    """Yield a finding on transactions that failed because of locks, with a remedy."""
    count, cases = tally(group, lambda trial: trial.failed)
    if not count:
        return
    most = max(group.runs, key=Run.failed_share)
    facts: dict[str, Any] = {
        "count": count,
        "where": places(cases),
        "share": most.failed_share(),
        "most": place(most.case) if len(cases) > 1 else None,
    }
    if group.case.server:
        yield Finding(sentences.transactions_refused, **facts)
    else:
        time = failure_time_of(failures_of(group.runs), group.case.settings.busy_timeout_ms)
        shares = shares_by_kind(group.runs)
        reads_first = any(suspicion.what == DEFERRED for suspicion in first_suspicions(group).values())
        yield Finding(
            sentences.given_up,
            **facts,
            what="transaction",
            time=time,
            shares=shares if len(group.case.spec.scripts) > 1 else None,
            remedy=cure(time, reads_first=reads_first) if time and not explained_errors(group) else None,
        )


def cure(time: FailureTime, *, reads_first: bool) -> str | None:
    """Return the remedy for failures with SQLITE_BUSY as a sentence; None if the cause is unknown.

    `reads_first` is whether a DEFERRED transaction was observed to read before it writes.
    """
    if time.timeout_ms is None:
        return None
    if not time.timeout_ms:
        return "Set a busy timeout on every connection."
    if time.waited:
        return "Try a longer timeout, or find what holds the lock for so long."
    if not time.at_once:
        return None
    return READS_FIRST_REMEDY if reads_first else "A longer timeout does not help."


READS_FIRST_REMEDY = "A transaction reads before it writes, so SQLite does not wait: use BEGIN IMMEDIATE."
"""Cause and remedy of SQLITE_BUSY failures that no busy timeout prevents."""


# Observations ("sightings") that the workers reported.


def count_by_kind(group: Group, topic: str, kind: Callable[[Sighting], K]) -> dict[K, int]:
    """Return the number of observations with this topic by kind, the most frequent kind first.

    The function `kind` returns the kind of an observation.
    """
    counts: dict[K, int] = {}
    for sighting in sightings(group, topic):
        counts[kind(sighting)] = counts.get(kind(sighting), 0) + sighting.count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


class UserPresenter(LoadShown):
    """Base class of the presenters of sql, app and exec: tables and findings of a report.

    Subclasses override `work`, which describes the work of a case's processes.
    """

    topics: ClassVar[tuple[Topic, ...]] = (
        given_up,
        throughput_findings,
        rate_findings,
        waiting,
        partial_proofs,
        figure_limits,
    )
    proves = CHECKS_PASSED
    failed: ClassVar[Column[case_table.Row]] = case_table.FAILED_SHARE.explained(
        ["failed: percentage of transactions given up because the database was busy"]
    )
    together = 3

    def is_doubtful(self, run: Run) -> bool:
        suspicious = (
            sighting.topic == SUSPICION and sighting.what not in NOTES_ONLY and ORDERS not in sighting.traits
            for trial in run.all_trials
            for sighting in trial.sightings
        )
        return getattr(run.case.spec, "strict", False) and any(suspicious)

    def work(self, case: Case) -> str:
        """Return a phrase on the work of a case's processes, to begin a sentence."""
        return case.workload

    def activity(self, group: Group) -> str:
        data = group.case.spec.data
        phrases = list(dict.fromkeys(self.work(run.case) for run in group.runs))
        if sources := list(filter(None, (data.database and f"a copy of {data.database}", data.setup))):
            phrases.append(f"database: {' and '.join(sources)}")
        late = sum(check.at_end for check in data.checks)
        if always := len(data.checks) - late:
            phrases.append(f"{plural(always, 'check')} before, during and after")
        if late:
            phrases.append(f"{plural(late, 'check')} at the end")
        return "; ".join(phrases)

    def columns(self, group: Group) -> Sequence[Column[case_table.Row]]:
        return _columns(group, self.failed)

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
