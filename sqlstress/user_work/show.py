"""How the user's own work is shown: a row for each number of processes, latencies by kind of operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import ClassVar

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic
from sqlstress.analysis.scaling import fewer_processes, starvation, tally, throughput
from sqlstress.analysis.wording import listing, place, places, whole
from sqlstress.report import Latency, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import merged
from sqlstress.report.server import ISOLATIONS
from sqlstress.show import case_table
from sqlstress.show.at_a_rate import RATE, at_a_rate
from sqlstress.show.blocks import (
    NAME,
    VERIFIED,
    Block,
    Column,
    Figure,
    Legend,
    Paragraph,
    Table,
    count_cell,
    ms_cell,
    seconds_cell,
    shortened,
    table_of,
    verified_cell,
    verified_legend,
    whole_cell,
)
from sqlstress.show.case_table import (
    FAILED_SHARE,
    FAIRNESS,
    LONGEST_WAIT,
    PROCESSES,
    RATIO,
    SCALING,
    SPREAD,
    TOTAL,
    TPS,
    Cell,
    Row,
    apart_columns,
    percentiles,
    rows_of,
    spread_legend,
)
from sqlstress.show.shown import LoadShown, Value
from sqlstress.statistics.units import format_duration
from sqlstress.target import product
from sqlstress.user_work import AFTER

# The tables: a row for each number of processes; and where there are several kinds, one for each of them.


HELD = "every check held"
NO_CHECK = "no check"
_LONGEST_KIND = 34


def kinds_of(run: Run) -> list[str]:
    """Return the kinds of operations of a run, in the order in which they were first done."""
    return list(dict.fromkeys(kind for trial in run.valid for kind in trial.latency))


def operations_of(run: Run) -> list[str]:
    """Return the kinds that are whole operations, not parts of them."""
    return list(
        dict.fromkeys(kind for trial in run.valid for one in trial.workers for kind in one.operations)
    )


def _only(percentile: str) -> Cell:
    """Return the cell of a percentile of a run whose operations are of one kind."""

    def cell(row: Row) -> str | None:
        kinds = operations_of(row.run)
        latency = row.run.latency(kinds[0]) if len(kinds) == 1 and row.trial else None
        return ms_cell(getattr(latency, percentile)) if latency else None

    return cell


def _answers(name: str) -> Cell:
    """Return the cell of how many answers of a kind came for each operation, where any did."""

    def cell(row: Row) -> str | None:
        trials = [trial for trial in row.run.valid if trial.seconds > 0]
        counts = [(getattr(trial, name) or 0) / trial.seconds for trial in trials]
        return count_cell(median(counts)) if any(counts) else None

    return cell


def _time(row: Row) -> str | None:
    """Return how long a fixed amount of work took; a window's length stands in the heading."""
    return seconds_cell(row.trial.seconds) if row.trial and row.run.case.ops is not None else None


CHECKED: Figure[Row] = Figure(VERIFIED.column, lambda row: checked_cell(row.run))
FIGURES: tuple[Figure[Row], ...] = (
    PROCESSES,
    Figure(Column("time s", ("time", "s")), _time),
    TOTAL,
    Figure(Column("p50 ms", ("p50", "ms")), _only("p50_ns")),
    Figure(Column("p99 ms", ("p99", "ms")), _only("p99_ns")),
    Figure(Column("BUSY/s", ("BUSY", "per s")), _answers("busy")),
    Figure(Column("BUSY_SNAPSHOT/s", ("BUSY_SNAP-", "SHOT per s")), _answers("busy_snapshot")),
    FAILED_SHARE,
    FAIRNESS,
    LONGEST_WAIT,
    CHECKED,
)
_LEAVING = ("longest wait ms", "fairness", "BUSY/s")
_MEANINGS = {
    "BUSY/s": "BUSY: answers that a lock was not free",
    "BUSY_SNAPSHOT/s": "BUSY_SNAPSHOT: what was read is out of date, so that it can't write",
    "failed %": "failed: transactions given up for a busy database, in per cent",
    "fairness": "fairness (Jain's index): 1 when all processes got an equal share",
    "longest wait ms": "longest wait: the slowest transaction, one still pending at the end included",
}
_AT_SERVER = {
    "BUSY/s": "BUSY: locks that stayed taken, and deadlocks",
    "BUSY_SNAPSHOT/s": "BUSY_SNAPSHOT: what was read is out of date, of a server a serialization failure",
}


def build(group: Group) -> Table:
    """Return the table of a group's runs."""
    return table_of(rows_of(group), (*apart_columns(group), *FIGURES), _LEAVING)


def legend(group: Group, own: Mapping[str, str], table: Table) -> Iterator[str]:
    """Explain the columns that the table has; `own` are those that mean something else here."""
    yield "TPS: transactions a second"
    yield from spread_legend(group)
    yield from percentiles(table, "the transactions were as fast or faster")
    meanings = {**_MEANINGS, **(_AT_SERVER if any(run.case.server for run in group.runs) else {}), **own}
    yield from (meanings[name] for name in _MEANINGS if name in table.headers)
    yield from checked_legend(group)


def proved(group: Group) -> str:
    """Return what was proved where all is well; of a store that did not look at its own data, no word."""
    asked = [run for run in group.runs if run.verdict.status == "ok"]
    products = dict.fromkeys(product(run.case.driver) for run in asked)
    unseen = {product(run.case.driver) for run in asked if not run.verdict.is_sound}
    looked = [one for one in products if one not in unseen]
    find = "find" if len(looked) > 1 else "finds"
    if not has_checks(group):
        whose = listing([f"{one}'s" for one in looked]) or "the store's"
        return f"none was given, so only {whose} own consistency was verified"
    return f"{HELD}{f', and {listing(looked)} {find} nothing wrong' if looked else ''}"


def has_checks(group: Group) -> bool:
    """Return whether the user said what must be true of the data of a group that was found right."""
    right = [run for run in group.runs if run.verdict.status == "ok"]
    return not right or any(check.name == AFTER for run in right for check in run.verdict.checks)


def checked_cell(run: Run) -> str:
    """Return what is said of a run: "ok" only where something was checked that SQLite does not know."""
    asked = any(check.name == AFTER for check in run.verdict.checks)
    return verified_cell(run) if asked or run.verdict.status != "ok" else NO_CHECK


def checked_legend(group: Group) -> Iterator[str]:
    """Yield what the words in that column mean."""
    return verified_legend(group, proved(group), "ok" if has_checks(group) else NO_CHECK)


@dataclass(frozen=True, slots=True)
class KindRow(Row):
    """A kind of operation of a run."""

    kind: str
    latency: Latency | None
    """At a rate from when an operation was due; of parts of operations, and otherwise, from its begin."""


def latencies(group: Group) -> Iterator[Block]:
    """Yield the table of the kinds, where a run has several."""
    rows = [
        KindRow(run, trial, kind, _from_due(run, kind) or run.latency(kind))
        for run, trial in group.measured()
        if len(kinds_of(run)) > 1
        for kind in kinds_of(run)
    ]
    if rows:
        yield table_of(rows, (*apart_columns(group), *OF_KINDS), ("p90 ms", "p99.9 ms", "p50 ms"))
        if group.case.rate:
            parts = any(map(_is_part, rows))
            told = "Each from the moment it was due; service: from its begin"
            yield Paragraph(f"{told}, as all of what is but a part of another one." if parts else f"{told}.")


def _from_due(run: Run, kind: str) -> Latency | None:
    """Return the latencies of a kind from the moment each was due; None in a closed loop."""
    found = [one.arrived.latency.get(kind) for one in run.valid if one.arrived]
    return merged([one for one in found if one and one.count])


def _is_part(row: KindRow) -> bool:
    return row.kind not in operations_of(row.run)


def _ms(percentile: str) -> Callable[[KindRow], str | None]:
    return lambda row: ms_cell(getattr(row.latency, percentile)) if row.latency else None


def _per_s(row: KindRow) -> str | None:
    """Return how many a second were done, as the median over the trials."""
    trials = [trial for trial in row.run.valid if trial.seconds > 0]
    return count_cell(median(_count(trial, row.kind) / trial.seconds for trial in trials)) if trials else None


def _count(trial: Trial, kind: str) -> int:
    latency = trial.latency.get(kind)
    return latency.count if latency else 0


def _service(row: KindRow) -> str | None:
    found = row.run.latency(row.kind) if row.run.case.rate else None
    return ms_cell(found.p99_ns) if found else None


OF_KINDS: tuple[Figure[KindRow], ...] = (
    Figure(Column("kind", ("", "what"), "left", NAME), lambda row: shortened(row.kind, _LONGEST_KIND)),
    Figure(
        Column("processes", ("proc-", "esses"), role=NAME), lambda row: whole_cell(row.run.case.concurrency)
    ),
    RATE,
    Figure(Column("per s", ("", "per s")), _per_s),
    Figure(Column("p50 ms", ("p50", "ms")), _ms("p50_ns")),
    Figure(Column("p90 ms", ("p90", "ms")), _ms("p90_ns")),
    Figure(Column("p99 ms", ("p99", "ms")), _ms("p99_ns")),
    Figure(Column("p99.9 ms", ("p99.9", "ms")), _ms("p999_ns")),
    Figure(Column("max ms", ("max", "ms")), _ms("max_ns")),
    Figure(Column("service p99 ms", ("service", "p99 ms")), _service),
)


# What others in the way did to the user's transactions at a server: refusals, and uneven shares.


def at_server(group: Group) -> Iterator[Finding]:
    """Yield what others in the way did to the runs of a group."""
    yield from too_weak(group)
    yield from _given_up_at_server(group)
    yield from _refused(group)
    yield from starvation(group, fewer_processes)


def too_weak(group: Group) -> Iterator[Finding]:
    """Say of checks that failed at the weakest level what that level lets happen."""
    if any(_fails(run) and _is_weakest(run) for run in group.runs):
        yield Finding("read-committed")


def _is_weakest(run: Run) -> bool:
    """Return whether transactions ran at the weakest level: what was read back says so, or what was asked."""
    if not run.case.server:
        return False
    levels = [level for one in run.trials if (level := one.effective.get("transaction_isolation"))]
    return any(ISOLATIONS[0] in level.replace(" ", "-") for level in levels or [run.case.server.isolation])


def _fails(run: Run) -> bool:
    return any(check.name.startswith("checks ") and check.status == "failed" for check in run.verdict.checks)


def _given_up_at_server(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.failed)
    if number:
        most = max(group.runs, key=Run.failed_share)
        yield Finding(
            "transactions-refused",
            count=number,
            where=places(cases),
            share=most.failed_share(),
            most=place(most.case),
        )


def _refused(group: Group) -> Iterator[Finding]:
    refused, where = tally(group, lambda trial: trial.busy_snapshot)
    locked, also = tally(group, lambda trial: trial.busy)
    if refused or locked:
        yield Finding("refused", where=places([*where, *also]), refused=refused, locked=locked)


# What waiting for the lock did: starvation, transactions given up, transactions begun again.


def waiting(group: Group) -> Iterator[Finding]:
    """Yield what waiting did to the runs of a group."""
    if group.case.server:
        yield from at_server(group)
        return
    yield from _given_up(group)
    yield from _snapshots(group)
    yield from starvation(group, lambda cases: _remedy(group, cases))


def _remedy(group: Group, _cases: Sequence[Case]) -> Finding:
    return Finding("shorter-transactions", can_be_fair=group.case.settings.busy != "fair")


def _given_up(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.failed)
    if not number:
        return
    most = max(group.runs, key=Run.failed_share)
    timeout = format_duration(group.case.settings.busy_timeout_ms / 1000)
    yield Finding(
        "transactions-given-up",
        count=number,
        where=places(cases),
        share=most.failed_share(),
        most=place(most.case),
        timeout=timeout,
    )


def _snapshots(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.busy_snapshot)
    if number:
        yield Finding("transactions-snapshot", count=number, where=places(cases))


class OwnShown(LoadShown):
    """An experiment inherits from it, and says what its processes do."""

    topics: ClassVar[tuple[Topic, ...]] = (throughput, at_a_rate, waiting, partial_proofs, trust)
    proves = HELD
    together = 3
    measures = ((TPS, RATIO), (SPREAD,), SCALING)

    def work(self, case: Case) -> str:
        """Return what the processes of a case do, as the beginning of a sentence."""
        return case.workload

    def what(self, group: Group) -> str:
        works = dict.fromkeys(map(self.work, (run.case for run in group.runs)))
        return "; ".join((*works, *_checked(group.case)))

    def closed_loop_table(self, group: Group) -> Iterator[Block]:
        yield from case_table.blocks(group)
        table = build(group)
        yield table
        yield Legend(table, partial(legend, group, self.meanings))

    def more_blocks(self, group: Group) -> Iterator[Block]:
        return latencies(group)

    def proved(self, group: Group) -> str:
        return proved(group)

    def loads(self, cases: Sequence[Case]) -> list[str]:
        return list(map(self.work, cases))

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        return CASE


def _checked(case: Case) -> Iterator[str]:
    data = case.spec.data
    made = " and ".join(filter(None, (data.database and f"a copy of {data.database}", data.setup)))
    if made:
        yield f"database: {made}"
    if data.checks:
        count = len(data.checks)
        yield f"{whole(count)} check{'s' * (count != 1)} before, during and after"


def _of_data(field: str) -> Callable[[Run], Value]:
    def value(run: Run) -> Value:
        data = getattr(run.case.spec, "data", None)
        found: Value = getattr(data, field) if data else None
        return found

    return value


def _checks(run: Run) -> Value:
    data = getattr(run.case.spec, "data", None)
    return len(data.checks) if data else None


CASE: dict[str, Callable[[Run], Value]] = {
    "setup": _of_data("setup"),
    "database": _of_data("database"),
    "checks": _checks,
}
