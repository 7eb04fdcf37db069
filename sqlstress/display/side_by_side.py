"""Several targets side by side: a column each, by the number of processes, and who leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.group import Group
from sqlstress.analysis.sides import EQUAL, TOLD_APART, Lead, Place, Side, at, by_worth, leads, sides_of
from sqlstress.analysis.wording import duration
from sqlstress.display.blocks import NAME, Block, Column, Paragraph, Table
from sqlstress.display.case_table import TOTAL, Row, spread_legend
from sqlstress.display.clean import clean
from sqlstress.display.figures import Figure, layout_column, table_of, whole_cell
from sqlstress.experiment import face_of
from sqlstress.report import Run
from sqlstress.target import apart, bare_call

INCOMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class _Line:
    """A place, with what each side has there."""

    place: Place
    runs: dict[str, Run]
    leads: tuple[Lead, ...]
    comparable: bool
    """Whether a commit is worth the same with all sides; then a place without a lead lacks figures."""


def blocks(group: Group) -> Iterator[Block]:
    """Yield the table of the targets of a group, and what its columns mean; nothing of a single target."""
    sides = sides_of(group)
    if not sides or group.case.arrivals:
        return
    yield _table(group, sides)
    units = face_of(group.case).units
    legend = [f"TPS: {units} a second of all processes together", *spread_legend(group)]
    if len(by_worth(sides)) == 1:
        legend.append("leads: which is faster, beyond its noise")
    else:
        legend.append(f"{INCOMPARABLE}: a commit is not worth the same, as is said above")
    yield Paragraph(f"{'; '.join(legend)}.")
    yield from (Paragraph(f"{words}.") for side in sides if (words := apart(side.driver)))
    yield from _bindings(sides)


def _bindings(sides: Sequence[Side]) -> Iterator[Block]:
    """Yield what of the figures is the bindings' doing, where that was measured."""
    told = [
        f"{clean(side.driver)} {duration(ns)}{_what(side.driver)}"
        for side in sides
        if (ns := side.bare_call_ns) is not None
    ]
    if told:
        yield Paragraph(
            f"One call through the binding, with nothing asked of the data: {'; '.join(told)}. "
            "Every call of an operation costs at least that much, whatever the store does: what is faster "
            "by no more than these differ by may owe it to its binding."
        )


def _what(driver: str) -> str:
    return f" ({words})" if (words := bare_call(driver)) else ""


def _table(group: Group, sides: tuple[Side, ...]) -> Table:
    found = leads(group)
    runs = {side.name: {at(run.case): run for run in side.runs} for side in sides}
    every = sorted({place for own in runs.values() for place in own})
    lines = [
        _Line(
            place,
            {name: own[place] for name, own in runs.items() if place in own},
            tuple(one for one in found if at(one.case) == place),
            len(by_worth(sides)) == 1,
        )
        for place in every
    ]
    several = len({place[0] for place in every}) > 1
    column = layout_column(run.case for run in group.runs)
    files: Figure[_Line] = Figure(column, lambda line: whole_cell(line.place[0]))
    return table_of(lines, (*[files] * several, _PROCESSES, *map(_total, sides), _LEADS))


def _total(side: Side) -> Figure[_Line]:
    def cell(line: _Line) -> str | None:
        run = line.runs.get(side.name)
        return TOTAL.cell(Row(run, run.shown())) if run else None

    return Figure(Column(f"{side.name} TPS", (side.name, "TPS")), cell)


def _leads(line: _Line) -> str | None:
    return ", ".join(map(_told, line.leads)) or (None if line.comparable else INCOMPARABLE)


def _told(lead: Lead) -> str:
    if lead.verdict == TOLD_APART:
        return lead.ahead[0]
    if lead.verdict == EQUAL and len(lead.ahead) < len(lead.names):
        return " = ".join(lead.ahead)
    return lead.verdict


_PROCESSES: Figure[_Line] = Figure(
    Column("processes", ("proc-", "esses"), role=NAME), lambda line: whole_cell(line.place[1])
)
_LEADS: Figure[_Line] = Figure(Column("leads", ("", "leads"), "left"), _leads)
