"""How primary keys are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import size
from sqlstress.display.blocks import Block, Paragraph, Table
from sqlstress.display.case_table import spread_legend
from sqlstress.display.figures import verified_legend
from sqlstress.display.measures import RATIO, ROWS_PER_S, SPREAD, Measure, of_trial
from sqlstress.display.plot import Plot
from sqlstress.display.shown import TIME, Shown, Value
from sqlstress.experiments.keys.shown import plots
from sqlstress.experiments.keys.shown.cells import space_figure
from sqlstress.experiments.keys.shown.findings import keys
from sqlstress.experiments.keys.shown.published import SOURCE, beside_published
from sqlstress.experiments.keys.shown.tables import published_table, rows_of, space_table, time_table
from sqlstress.report import Trial
from sqlstress.statistics.units import format_count

_SPACE = {
    "file_bytes": "file",
    "bytes_per_row": "bytes per row",
    "table_share": "table's share",
    "indices_share": "indices' share",
    "table_fan_out": "table's fan-out",
    "indices_fan_out": "indices' fan-out",
}
"""Column of the CSV → what it has of the space that a database takes."""


class KeysShown(Shown):
    """Time and space of each type of identifier, schema by schema."""

    topics = (keys, partial_proofs, trust)
    measures = (
        (ROWS_PER_S, RATIO),
        (SPREAD,),
        (
            TIME,
            Measure(
                "{letter} file",
                ("{letter}", "file"),
                "file: what the database takes",
                of_trial(lambda trial: size(trial.space.file_bytes) if trial.space else None),
            ),
        ),
    )

    def what(self, group: Group) -> str:
        picks = group.case.spec
        if picks is None:
            return "Users pick items"
        return (
            f"{format_count(picks.users)} users pick about {format_count(picks.picks)} of "
            f"{format_count(picks.items)} items each, in a transaction each, BEGIN {picks.begin.upper()}"
        )

    def blocks(self, group: Group) -> Iterator[Block]:
        rows = rows_of(group)
        times, spaces = time_table(rows), space_table(rows)
        yield times
        yield Paragraph(f"{'; '.join(_times(group, times))}.")
        if spaces.rows:
            yield spaces
            yield Paragraph(f"{'; '.join((_FILE, *[_PAGES] * ('indices' in spaces.headers)))}.")
        compared = tuple(beside_published(group))
        if compared:
            yield Paragraph(f"Beside the published figures ({SOURCE}), of another machine:")
            yield published_table(compared)

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots.plots(group)

    def trial_columns(self, trials: Sequence[Trial]) -> Mapping[str, Callable[[Trial], Value]]:
        return (
            {name: _space(figure) for name, figure in _SPACE.items()}
            if any(one.space for one in trials)
            else {}
        )


def _space(name: str) -> Callable[[Trial], Value]:
    def value(trial: Trial) -> Value:
        figure = space_figure(trial.space, name)
        return int(figure) if figure is not None and figure.is_integer() else figure

    return value


_FILE = "file: the whole database, with users and items"
_PAGES = (
    "table and indices: what the table of picks and its indices have of the file; bytes per row: of both "
    "together; fan-out: children of an internal page, on average. Shares and fan-outs are those of "
    "sqlite3_analyzer"
)


def _times(group: Group, table: Table) -> Iterator[str]:
    yield "time: from the first transaction's begin to the last one's end, ids made on the way"
    if any(name.startswith("uuid4") for name in table.headers):
        yield "uuid4 = 1: relative to uuid4 in the same schema"
    yield "TPS: transactions a second"
    if "p99 ms" in table.headers:
        yield "p50 and p99: half and 99% of them were as fast or faster"
    if "retries" in table.headers:
        yield "retries: answers BUSY that SQLite's own waiting did not spare a process"
    yield from spread_legend(group, "time")
    yield from verified_legend(group)
