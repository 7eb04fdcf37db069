"""The tables: a row for each number of processes; and where there are several kinds, one for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import listing
from sqlstress.display.at_a_rate.table import NOTHING, RATE
from sqlstress.display.blocks import NAME, Block, Column, Paragraph, Table
from sqlstress.display.case_table import (
    FAILED_SHARE,
    FAIRNESS,
    LONGEST_WAIT,
    PROCESSES,
    TOTAL,
    Cell,
    Row,
    apart,
    rows_of,
    spread_legend,
)
from sqlstress.display.clean import shortened
from sqlstress.display.figures import (
    VERIFIED,
    Figure,
    count_cell,
    ms_cell,
    seconds_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.report import Latency, Run, Trial
from sqlstress.report.latency import merged
from sqlstress.target import product

HELD = "every check held"
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
    VERIFIED,
)
_LEAVING = ("longest wait ms", "fairness", "BUSY/s")
_MEANINGS = {
    "p99 ms": "p50 and p99: half and 99% of the transactions were as fast or faster",
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
    return table_of(rows_of(group), (*apart(group), *FIGURES), _LEAVING)


def legend(group: Group, table: Table, own: Mapping[str, str] = NOTHING) -> str:
    """Explain the columns that the table has; `own` are those that mean something else here."""
    told = ["TPS: transactions a second", *spread_legend(group)]
    meanings = {**_MEANINGS, **(_AT_SERVER if any(run.case.server for run in group.runs) else {}), **own}
    told += [meanings[name] for name in _MEANINGS if name in table.headers]
    return f"{'; '.join((*told, *verified_legend(group, proved(group))))}."


def proved(group: Group) -> str:
    """Return what was proved where all is well; of a store that did not look at its own data, no word."""
    asked = [run for run in group.runs if run.verdict.status == "ok"]
    products = dict.fromkeys(product(run.case.driver) for run in asked)
    unseen = {product(run.case.driver) for run in asked if not run.verdict.is_sound}
    looked = [one for one in products if one not in unseen]
    find = "find" if len(looked) > 1 else "finds"
    return f"{HELD}{f', and {listing(looked)} {find} nothing wrong' if looked else ''}"


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
        yield table_of(rows, (*apart(group), *OF_KINDS), ("p90 ms", "p99.9 ms", "p50 ms"))
        if group.case.arrivals:
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
    found = row.run.latency(row.kind) if row.run.case.arrivals else None
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
