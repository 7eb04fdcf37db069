"""Several targets side by side: a column each, by the number of processes, and who leads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstress.analysis.group import Group
from sqlstress.analysis.sides import EQUAL, TOLD_APART, Lead, Place, Side, at, by_worth, leads, sides_of
from sqlstress.display.blocks import NAME, Block, Column, Paragraph, Table
from sqlstress.display.case_table import TOTAL, Row, spread_legend
from sqlstress.display.figures import Figure, table_of, whole_cell
from sqlstress.experiment import face_of
from sqlstress.report import Run

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
    files = [_FILES] if len({place[0] for place in every}) > 1 else []
    return table_of(lines, (*files, _PROCESSES, *map(_total, sides), _LEADS))


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


_FILES: Figure[_Line] = Figure(
    Column("files", ("", "files"), role=NAME), lambda line: whole_cell(line.place[0])
)
_PROCESSES: Figure[_Line] = Figure(
    Column("processes", ("proc-", "esses"), role=NAME), lambda line: whole_cell(line.place[1])
)
_LEADS: Figure[_Line] = Figure(Column("leads", ("", "leads"), "left"), _leads)
