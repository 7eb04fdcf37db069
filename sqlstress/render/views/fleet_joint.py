"""What is shown of hosts that loaded one server together: totals, which are marked as such."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.fleet import Fleet, Joint
from sqlstress.analysis.fleet.joint_words import clocks_told, known_within
from sqlstress.analysis.wording import percent, plural
from sqlstress.display import blocks
from sqlstress.display.blocks import DETAIL, NAME, Block, Column, Lines
from sqlstress.display.clean import clean, shortened
from sqlstress.display.figures import Figure, count_cell, layout_column, table_of, whole_cell
from sqlstress.experiment import face_of

_WHAT_IT_IS = (
    "TOTAL: the sum over hosts whose windows opened at one agreed instant of the server's clock, the median "
    "of its trials. The windows' error is what they may not have in common, with the error of the clocks; "
    "how trials differ is not in it. Each host has tables of its own on the server: hosts share its "
    "processors, its log and its disk, and no row."
)


def joint_blocks(fleet: Fleet) -> Iterator[Block]:
    """Yield the totals of each common measurement; nothing where every host loaded alone."""
    every = fleet.joint()
    for meeting in dict.fromkeys(one.meeting for one in every):
        own = [one for one in every if one.meeting == meeting]
        yield Lines((f"Together, on {shortened(own[0].server, 60)}: totals of all hosts. {own[0].work}.",))
        yield _table(own)
        yield Lines((*_left_out(own), *clocks_told(fleet, meeting)))
    if every:
        yield blocks.Paragraph(_WHAT_IT_IS)


def _table(rows: list[Joint]) -> blocks.Table:
    unit = face_of(rows[0].case).rate_counts
    figures: tuple[Figure[Joint], ...] = (
        Figure(layout_column(row.case for row in rows), lambda row: whole_cell(row.case.buckets)),
        Figure(
            Column("processes of each host", ("processes", "each"), role=NAME),
            lambda row: whole_cell(row.case.concurrency),
        ),
        Figure(
            Column("due per s, each host", ("due per s", "each"), role=NAME),
            lambda row: count_cell(row.case.arrivals.rate) if row.case.arrivals else None,
        ),
        Figure(Column("hosts", ("", "hosts"), "left"), lambda row: f"{row.hosts} of {len(row.asked)}"),
        Figure(Column("trials", ("", "trials"), role=DETAIL), lambda row: whole_cell(len(row.totals))),
        Figure(Column(f"TOTAL, {unit} a second", ("TOTAL", "per s")), _total),
        Figure(Column("lowest", ("", "lowest"), role=DETAIL), lambda row: _end(row, row.lowest)),
        Figure(Column("highest", ("", "highest"), role=DETAIL), lambda row: _end(row, row.highest)),
        Figure(Column("windows' error", ("windows'", "error")), _off),
        Figure(
            Column("common window s", ("common", "window s")),
            lambda row: f"{row.typical.common_s:.4f}" if row.typical else None,
        ),
        Figure(
            Column("clocks within", ("clocks", "within")),
            lambda row: known_within(row.typical) if row.typical else None,
        ),
    )
    return table_of(rows, figures, leaving=("trials", "lowest", "highest"))


def _total(row: Joint) -> str | None:
    return count_cell(row.typical.rate) if row.typical else None


def _end(row: Joint, rate: float) -> str | None:
    """Return the lowest or the highest total; nothing where there is one trial only."""
    return count_cell(rate) if len(row.totals) > 1 else None


def _off(row: Joint) -> str | None:
    return f"±{percent(row.typical.off_share)}" if row.typical else None


def _left_out(rows: list[Joint]) -> Iterator[str]:
    """Yield who is in no total, each reason once."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        for name, why in row.without.items():
            found[name, why] = found.get((name, why), 0) + 1
    for (name, why), cases in found.items():
        where = "" if cases == len(rows) else f" of {plural(cases, 'case')}"
        yield f"Not in the total{where}: {clean(name) or '?'}: {shortened(why, 200)}."
