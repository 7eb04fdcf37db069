"""Tables and findings of the experiment with primary keys, as pure functions of a report.

The times of two types of id are compared pass by pass; a difference counts only if it exceeds the noise of
this pair. Sizes of files have no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.answers import inconclusive_findings, is_conclusive, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, PairwiseTests
from sqlstress.analysis.wording import size
from sqlstress.experiments.classics import sentences
from sqlstress.experiments.classics.sentences import TypeCost
from sqlstress.experiments.classics.spec import ID_TYPES, SCHEMAS, Picks
from sqlstress.report import Run, Space, Trial
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    PERCENTILES,
    VERIFIED,
    Block,
    Column,
    Legend,
    Value,
    count_cell,
    seconds_cell,
    share_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.plots import Plot
from sqlstress.show.shown import TIME, Presenter
from sqlstress.statistics.compare import NEAR
from sqlstress.statistics.units import finite, format_count

TABLE = "picks"
SPACE: Mapping[str, Callable[[Space], float | None]] = {
    "file_bytes": lambda space: space.file_bytes,
    "bytes_per_row": lambda space: space.bytes_per_row(TABLE),
    "table_share": lambda space: space.table_alone(TABLE).share,
    "indices_share": lambda space: space.indices_of(TABLE).share,
    "table_fan_out": lambda space: space.table_alone(TABLE).fan_out,
    "indices_fan_out": lambda space: space.indices_of(TABLE).fan_out,
}
"""Functions that compute a figure from the space in the file, by the figure's column in the CSV.

Sizes are in bytes, shares of the file from 0 to 1, and fan-outs in children per internal page of a b-tree.
"""
BYTES_IN_MB = 1e6
BASE = "uuid4"
"""Type of id with which the other types are compared."""
ORDER = ("uuid7", "ulid-monotonic", "ulid", BASE, "int")
"""Types of id in the order of preference, if time and space are equal.

A standard comes first, and types that contain their creation time come before uuid4. "int" is last, because
it needs a database that assigns all ids.
"""


def space_figure(space: Space | None, name: str) -> float | None:
    """Return the figure of SPACE with this name; None if not measured, or if the report is inconsistent."""
    if space is None:
        return None
    try:
        return finite(SPACE[name](space))
    except (KeyError, ZeroDivisionError):
        return None


@dataclass(frozen=True, slots=True, eq=False)
class KeyRow(case_table.Row):
    """Row of a case, with its trial of median rate."""

    base: KeyRow | None = None
    """Row of the case that differs only in the type of id, which is uuid4; None if there is no such case."""

    @property
    def picks(self) -> Picks:
        """Spec of the case: schema, type of id, and load."""
        spec: Picks = self.run.case.spec
        return spec

    def figure(self, name: str) -> float | None:
        """Return the figure with this name: "time" (in seconds, above 0), or a figure of SPACE.

        None if it was not measured or is not plausible, or if the data of the run was wrong.
        """
        if self.trial is None or self.run.verdict.status == "failed":
            return None
        seconds = finite(self.trial.seconds)
        if not seconds or seconds < 0:
            return None
        return seconds if name == "time" else space_figure(self.trial.space, name)

    def ratio(self, name: str) -> float | None:
        """Return a figure divided by that of uuid4; None if either is unknown."""
        over, under = self.figure(name), self.base.figure(name) if self.base else None
        return over / under if over is not None and under else None


def rows_of(group: Group) -> list[KeyRow]:
    """Return the rows of a group, in the order of its runs."""

    def place(run: Run) -> tuple[Picks, int]:
        return replace(run.case.spec, id_type=BASE), run.case.concurrency

    bases = {
        place(run): KeyRow(run, run.valid_median_trial())
        for run in group.runs
        if run.case.spec.id_type == BASE
    }
    return [KeyRow(run, run.valid_median_trial(), bases.get(place(run))) for run in group.runs]


# Findings: the type of id to use with each schema, and its cost.


def keys(group: Group) -> Iterator[Finding]:
    """Yield advice on the type of id to use with each schema, from the cases with the most processes."""
    rows = [row for row in rows_of(group) if row.figure("time")]
    most = max((row.run.case.concurrency for row in rows), default=0)
    compared = [row for row in rows if row.run.case.concurrency == most]
    tested = group.pairwise_tests([row.run for row in compared]) if compared else None
    if tested is None:
        if len(compared) > 1:
            yield Finding(shared.cannot_tell, advice=more_trials(group.case))
        return
    findings = []
    for schema in SCHEMAS:
        by_type = {row.picks.id_type: row for row in compared if row.picks.schema == schema}
        if BASE in by_type and len(by_type.keys() & {*ID_TYPES}) > 1:
            findings.append(_advice(schema, by_type, tested))
    yield from findings
    yield from inconclusive_findings(tested, findings, group.case)


def _advice(schema: str, by_type: Mapping[str, KeyRow], tested: PairwiseTests) -> Finding:
    """Return a finding with the type of id to use with a schema, and its cost compared with uuid4.

    `by_type` has the rows of the schema by type of id. `tested` has the comparisons of their times.
    """
    base, integers = by_type[BASE], by_type.get("int")
    candidates = [by_type[id_type] for id_type in ORDER if id_type in by_type and id_type != "int"]
    # Drop each type that is significantly slower than another one. Of the others, choose the first in ORDER
    # whose file is about as small as the smallest.
    quick = [row for row in candidates if not any(_is_quicker(rival, row, tested) for rival in candidates)]
    files = {row.picks.id_type: row.figure("file_bytes") or 0.0 for row in quick}
    least = min(filter(None, files.values()), default=0.0)
    chosen = next((row for row in quick if files[row.picks.id_type] * (1 - NEAR) <= least), quick[0])
    takes_int = integers is not None and not tested.is_less(integers.run, chosen.run)
    stays = chosen is base
    return Finding(
        sentences.id_type,
        schema=schema,
        chosen=None if stays else chosen.picks.id_type,
        cost=None if stays else _cost(chosen, base, tested),
        int_cost=_cost(integers, base, tested) if integers and takes_int else None,
        dated=not stays and not tested.is_less(base.run, chosen.run),
        unclear=tuple(
            row.picks.id_type
            for row in candidates
            if row not in (chosen, base) and not tested.adds_little(chosen.run, row.run)
        ),
    )


def _is_quicker(row: KeyRow, other: KeyRow, tested: PairwiseTests) -> bool:
    """Return whether `row` is quicker than `other` by significantly more than the share NEAR."""
    rates = None if row is other else tested.ratio(other.run, row.run)
    return rates is not None and rates.low > 1 / (1 - NEAR)


def _cost(row: KeyRow, base: KeyRow, tested: PairwiseTests) -> TypeCost:
    """Return the time and the space of a case compared with uuid4."""
    time, file = tested.ratio(row.run, base.run), row.ratio("file_bytes")
    if time is None or not is_conclusive(time):
        return TypeCost(unclear=True, file=file)
    equal = time.is_within(NEAR)
    return TypeCost(None if equal else time, equal=equal, file=file)


# Tables of time and of space: a row for each type of id, schema by schema.


def _seconds(row: KeyRow) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    # Each pass does the same work, so that the relative error of the time is that of the rate.
    return case_table.marked_cell(row.run, seconds_cell(row.trial.seconds), row.run.rates())


def _retries(trial: Trial) -> str | None:
    counts = [count for count in (trial.busy, trial.busy_snapshot) if count is not None]
    return count_cell(sum(counts)) if counts else None


def _space_of(figure: str, trial: Trial) -> Value:
    value = space_figure(trial.space, figure)
    return int(value) if value is not None and value.is_integer() else value


def _space_column(name: str, csv: str, write: Callable[[float], str | None], **more: Any) -> Column[KeyRow]:
    """Return the column of a figure of SPACE.

    `name` is its heading, `csv` the name of the figure in SPACE and in the CSV, and `write` makes the cell.
    """

    def cell(row: KeyRow) -> str | None:
        value = row.figure(csv)
        return None if value is None else write(value)

    return Column(name, cell=cell, csv=csv, value=partial(_space_of, csv), **more)


def mb_cell(value: float) -> str | None:
    """Return a number of bytes as text in MB (millions of bytes)."""
    mb = value / BYTES_IN_MB
    return count_cell(mb) if mb >= 1000 else f"{mb:.2f}"


def percent_cell(share: float) -> str:
    """Return a share as a percentage with one decimal, in the format of sqlite3_analyzer."""
    return f"{100 * share:.1f}%" if share < 1000 else f"{100 * share:.0e}%"


def fan_out_cell(children: float) -> str:
    """Return an average fan-out (children per internal page of a b-tree), rounded to a whole number."""
    return whole_cell(round(children))


_PICKS = case_table.kind_latency("picks")
_LATENCY = f"{PERCENTILES} of the transactions took at most this long"
_SCHEMA: Column[KeyRow] = Column("schema", ("", "schema"), "left", NAME, lambda row: row.picks.schema)
_ID_TYPE: Column[KeyRow] = Column("id type", ("", "id type"), "left", NAME, lambda row: row.picks.id_type)
TIME_COLUMNS: tuple[Column[KeyRow], ...] = (
    Column(
        "time s",
        cell=_seconds,
        meaning="time: from the start of the first transaction to the end of the last, including making ids",
    ),
    Column(
        "uuid4 = 1 (time)",
        ("uuid4", "= 1"),
        cell=lambda row: share_cell(row.ratio("time")),
        meaning="uuid4 = 1: relative to uuid4 in the same schema",
    ),
    replace(case_table.ROWS_PER_S, leaves=None),
    Column(
        "TPS",
        cell=case_table.trial_cell(lambda trial: count_cell(trial.tps)),
        meaning="TPS: transactions per second",
        leaves=10,
    ),
    case_table.percentile_column("p50", _PICKS, meaning=_LATENCY, leaves=20),
    case_table.percentile_column("p99", _PICKS, meaning=_LATENCY),
    Column(
        "retries",
        ("", "retries"),
        cell=case_table.trial_cell(_retries),
        meaning="retries: BUSY results that SQLite's own waiting did not avoid",
        leaves=30,
    ),
)
SPACE_COLUMNS: tuple[Column[KeyRow], ...] = (
    _space_column(
        "file MB", "file_bytes", mb_cell, meaning="file: the whole database, including users and items"
    ),
    Column("uuid4 = 1 (file)", ("uuid4", "= 1"), cell=lambda row: share_cell(row.ratio("file_bytes"))),
    _space_column(
        "bytes per row",
        "bytes_per_row",
        count_cell,
        heading=("bytes", "per row"),
        meaning="bytes per row: of the table and its indices",
        leaves=20,
    ),
    _space_column("table", "table_share", percent_cell, meaning="table: its share of the file", leaves=30),
    _space_column("indices", "indices_share", percent_cell, meaning="indices: their share of the file"),
    _space_column("table fan-out", "table_fan_out", fan_out_cell, leaves=10),
    _space_column(
        "indices fan-out",
        "indices_fan_out",
        fan_out_cell,
        meaning="fan-out: children of an internal page, on average; shares and fan-outs are from "
        "sqlite3_analyzer",
    ),
)


class KeysShown(Presenter):
    """Presenter of keys: tables of the time and space of each type of id, schema by schema."""

    topics = (keys, partial_proofs, figure_limits)
    measures = (
        (case_table.ROWS_FIGURE, case_table.RATIO),
        (case_table.SPREAD,),
        (
            TIME,
            case_table.ComparisonFigure(
                "{letter} file",
                ("{letter}", "file"),
                "file: what the database takes",
                case_table.compared_trial_cell(
                    lambda trial: size(trial.space.file_bytes) if trial.space else None
                ),
            ),
        ),
    )

    def activity(self, group: Group) -> str:
        picks: Picks = group.case.spec
        return (
            f"{format_count(picks.users)} users pick about {format_count(picks.picks)} of "
            f"{format_count(picks.items)} items each; one transaction per user, BEGIN {picks.begin.upper()}"
        )

    def blocks(self, group: Group) -> Iterator[Block]:
        rows = rows_of(group)
        several = len({row.run.case.concurrency for row in rows}) > 1
        names = (_SCHEMA, _ID_TYPE, *((case_table.PROCESSES,) if several else ()))
        legend = [*case_table.spread_legend(group, "time"), *verified_legend(group)]
        times = table_of(rows, (*names, *TIME_COLUMNS, VERIFIED.explained(legend)))
        yield times
        yield Legend(times)
        if measured := [row for row in rows if row.figure("time") and row.trial and row.trial.space]:
            spaces = table_of(measured, (*names, *SPACE_COLUMNS))
            yield spaces
            yield Legend(spaces)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield no plots: the standard ones draw processes, in which these cases do not differ."""
        return iter(())

    def further_columns(self, group: Group) -> Sequence[Column[Any]]:
        """Return the columns of space if it was measured."""
        return SPACE_COLUMNS if any(trial.space for run in group.runs for trial in run.trials) else ()
