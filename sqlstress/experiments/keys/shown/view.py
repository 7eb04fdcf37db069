"""How the experiment with primary keys is shown: time, space, and the published figures."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Block, Paragraph, Table
from sqlstress.display.verified import verified_legend
from sqlstress.experiments.keys.shown.published import SOURCE, beside_published
from sqlstress.experiments.keys.shown.tables import published_table, rows_of, space_table, time_table
from sqlstress.statistics.units import format_count

_FILE = "file: the whole database, with users and items"
_PAGES = (
    "table and indices: what the table of picks and its indices have of the file; bytes per row: of both "
    "together; fan-out: children of an internal page, on average. Shares and fan-outs are those of "
    "sqlite3_analyzer"
)


def what(group: Group) -> str:
    """Return what the processes did."""
    picks = group.case.spec
    if picks is None:
        return "Users pick items"
    return (
        f"{format_count(picks.users)} users pick about {format_count(picks.picks)} of "
        f"{format_count(picks.items)} items each, in a transaction each, BEGIN {picks.begin.upper()}"
    )


def blocks(group: Group) -> Iterator[Block]:
    """Yield the tables, each with what its columns mean."""
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


def _times(group: Group, table: Table) -> Iterator[str]:
    yield "time: from the first transaction's begin to the last one's end, ids made on the way"
    if any(name.startswith("uuid4") for name in table.headers):
        yield "uuid4 = 1: relative to uuid4 in the same schema"
    yield "TPS: transactions a second"
    if "p99 ms" in table.headers:
        yield "p50 and p99: half and 99% of them were as fast or faster"
    if "retries" in table.headers:
        yield "retries: answers BUSY that SQLite's own waiting did not spare a process"
    yield from verified_legend(group)
