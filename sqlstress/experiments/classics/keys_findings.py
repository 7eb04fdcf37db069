"""What the experiment with primary keys says: which type of id to take, which schema, and what each costs.

Times are compared over the passes, each pair against its noise. What a database takes is counted, and is
compared as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

from sqlstress.analysis.answers import doubts, is_conclusive, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import ERROR, Group, Tested
from sqlstress.experiments.classics import sentences
from sqlstress.experiments.classics.keys import ID_TYPES, SCHEMAS, Picks
from sqlstress.report import Run, Space
from sqlstress.statistics.compare import NEAR, Passes
from sqlstress.statistics.units import finite

TABLE = "picks"
SPACE: Mapping[str, Callable[[Space], float | None]] = {
    "file_bytes": lambda space: space.file_bytes,
    "bytes_per_row": lambda space: space.bytes_per_row(TABLE),
    "table_share": lambda space: space.table_alone(TABLE).share,
    "indices_share": lambda space: space.indices_of(TABLE).share,
    "table_fan_out": lambda space: space.table_alone(TABLE).fan_out,
    "indices_fan_out": lambda space: space.indices_of(TABLE).fan_out,
}
"""Figures of the space, by their columns of the CSV: sizes in bytes, shares of the file from 0 to 1."""
BYTES_IN_MB = 1e6


def space_figure(space: Space | None, name: str) -> float | None:
    """Return one of SPACE; None where it was not measured, or by a report that contradicts itself."""
    if space is None:
        return None
    try:
        return finite(SPACE[name](space))
    except (KeyError, ZeroDivisionError):
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A case that was measured, and whose data was not found wrong."""

    run: Run
    picks: Picks
    processes: int
    seconds: float
    """Time of its typical trial; above 0."""
    space: Space | None

    def figure(self, name: str) -> float | None:
        """Return the figure of a name: "time" (s), or one of SPACE."""
        return self.seconds if name == "time" else space_figure(self.space, name)

    @property
    def file(self) -> float:
        """Bytes of the file; 0 where it was not measured."""
        return self.figure("file_bytes") or 0.0


def cell_of(run: Run) -> Cell | None:
    """Return the figures of a run; None where they can't be believed."""
    trial = run.shown()
    if trial is None or run.verdict.status == "failed":
        return None
    seconds = finite(trial.seconds)
    if not seconds or seconds < 0:
        return None
    return Cell(run, run.case.spec, run.case.concurrency, seconds, trial.space)


class Cells:
    """The cells of a group, in the order of its runs."""

    def __init__(self, group: Group) -> None:
        self.all = tuple(cell for run in group.runs if (cell := cell_of(run)))
        self._by_place = {(cell.picks, cell.processes): cell for cell in self.all}

    def twin(self, of: Cell, **changes: Any) -> Cell | None:
        """Return the cell that differs from another one in this only, such as id_type="uuid4"."""
        return self._by_place.get((replace(of.picks, **changes), of.processes))


def ratio(cell: Cell | None, base: Cell | None, figure: str) -> float | None:
    """Return a cell's figure over that of another one."""
    if cell is None or base is None:
        return None
    over, under = cell.figure(figure), base.figure(figure)
    return over / under if over is not None and under else None


ORDER = ("uuid7", "ulid-monotonic", "ulid", "uuid4", "int")
"""Types, the standard before the others. Of those that time and space don't tell apart the first is advised:
it says when a row was made. "int" is apart: one database has to give all of them."""
UNIQUE = ("pair-norowid", "pair-rowid")
"""The schemas that keep a user from picking an item twice."""


def keys(group: Group) -> Iterator[Finding]:
    """Yield what a group says, as far as it has measured what must be compared for it."""
    cells = Cells(group)
    most = max((cell.processes for cell in cells.all), default=0)
    usual = [cell for cell in cells.all if cell.processes == most and cell.picks.made_by == "python"]
    inside = [
        (twin, cell)
        for cell in cells.all
        # Integers need no function of ours inside SQLite.
        if cell.picks.made_by == "sqlite" and cell.picks.id_type != "int"
        if (twin := cells.twin(cell, made_by="python"))
    ]
    # Types and schemas are tested together, ids made inside SQLite apart: all of it is to hold together.
    shared = replace(group, groups=group.groups * (1 + bool(inside)))
    tested = shared.tested([cell.run for cell in usual]) if usual else None
    found = [*_types(usual, tested), *_schemas(usual, tested)]
    if inside:
        found.append(_made_inside(shared, inside))
    yield from found
    yield from doubts(tested, found, group.case)


# Which type of identifier to use in a schema, by the time and the space of each.


def _types(usual: Sequence[Cell], tested: Tested | None) -> Iterator[Finding]:
    for schema in SCHEMAS:
        by_type = {cell.picks.id_type: cell for cell in usual if cell.picks.schema == schema}
        if "uuid4" in by_type and len(by_type.keys() & {*ID_TYPES}) > 1:
            yield _advice(schema, by_type, tested) if tested else _least(schema, by_type)


def _least(schema: str, by_type: Mapping[str, Cell]) -> Finding:
    """Return the types with the least time and space: single trials support no other conclusion."""
    quickest = min(by_type.values(), key=lambda cell: cell.seconds)
    smallest = min(by_type.values(), key=lambda cell: cell.file or float("inf"))
    return Finding(
        sentences.type_least,
        schema=schema,
        quickest=quickest.picks.id_type,
        seconds=float(quickest.seconds),
        smallest=None if smallest is quickest else smallest.picks.id_type,
        file=ratio(smallest, by_type["uuid4"], "file_bytes") or None,
    )


def _advice(schema: str, by_type: Mapping[str, Cell], tested: Tested) -> Finding:
    """Return the type to use in a schema, and its cost compared with uuid4."""
    base, numbers = by_type["uuid4"], by_type.get("int")
    made = [by_type[id_type] for id_type in ORDER if id_type in by_type and id_type != "int"]
    # No other type is clearly better than the chosen one: in time beyond doubt, or in space.
    quick = [cell for cell in made if not any(_is_quicker(other, cell, tested) for other in made)]
    least = min((cell.file for cell in quick if cell.file), default=0.0)
    chosen = next((cell for cell in quick if cell.file * (1 - NEAR) <= least), quick[0])
    takes_int = numbers is not None and not tested.is_less(numbers.run, chosen.run)
    stays = chosen is base
    return Finding(
        sentences.id_type,
        schema=schema,
        int_cost=_cost(numbers, base, tested) if numbers and takes_int else None,
        has_int=takes_int,
        stays=stays,
        chosen=None if stays else chosen.picks.id_type,
        dated=not stays and not tested.is_less(base.run, chosen.run),
        cost=None if stays else _cost(chosen, base, tested),
        unclear=tuple(
            other.picks.id_type
            for other in made
            if other not in (chosen, base) and not tested.adds_little(chosen.run, other.run)
        ),
    )


def _is_quicker(cell: Cell, other: Cell, tested: Tested) -> bool:
    """Say whether a cell is quicker than another one by more than NEAR, beyond doubt."""
    found = None if cell is other else tested.ratio(other.run, cell.run)
    return found is not None and found.low > 1 / (1 - NEAR)


def _cost(cell: Cell, base: Cell, tested: Tested) -> Finding:
    """Return the time and the space of a cell compared with uuid4."""
    found = tested.ratio(cell.run, base.run)
    known = found is not None and is_conclusive(found)
    equal = found is not None and known and found.is_within(NEAR)
    return Finding(
        sentences.type_cost,
        ratio=found if known and not equal else None,
        equal=equal,
        unclear=not known,
        file=ratio(cell, base, "file_bytes"),
    )


# Which schema to use, by the type that was measured in most of them.


def _schemas(usual: Sequence[Cell], tested: Tested | None) -> Iterator[Finding]:
    by_type = ([cell for cell in usual if cell.picks.id_type == id_type] for id_type in ORDER)
    by_schema = max(by_type, key=len)
    if len(by_schema) < 2:
        return
    near, equal, unclear = [min(by_schema, key=lambda cell: cell.seconds)], False, False
    seconds = near[0].seconds
    if tested:
        lead = leaders(tested, [cell.run for cell in by_schema])
        near, equal, unclear = lead.among(by_schema), lead.equal, lead.unclear
        seconds = next(cell.seconds for cell in near if cell.run is lead.best)
    # The smallest schema, and those that take about as much space.
    sized = sorted((cell for cell in by_schema if cell.file), key=lambda cell: cell.file)
    small = [cell for cell in sized if cell.file * (1 - NEAR) <= sized[0].file]
    yield Finding(
        sentences.schema,
        type=by_schema[0].picks.id_type,
        single=tested is None,
        quickest=tuple(cell.picks.schema for cell in near),
        several=len(near) > 1,
        seconds=float(seconds),
        equal=equal,
        unclear=unclear,
        smallest=tuple(cell.picks.schema for cell in small),
        about=len(small) > 1,
        megabytes=small[0].file / BYTES_IN_MB if small else None,
        unique=_unique(by_schema, small),
    )


def _unique(by_schema: Sequence[Cell], small: Sequence[Cell]) -> Finding:
    """Return the schemas without duplicate picks, and their cost in space."""
    unique = [cell for cell in by_schema if cell.picks.schema in UNIQUE]
    return Finding(
        sentences.unique,
        schemas=tuple(cell.picks.schema for cell in unique) or UNIQUE,
        one=len(unique) == 1,
        unmeasured=not unique,
        costs=tuple(
            Finding(sentences.schema_costs, schema=cell.picks.schema, times=value)
            for cell in unique
            if cell not in small and (value := ratio(cell, next(iter(small), None), "file_bytes")) is not None
        ),
    )


def _made_inside(group: Group, pairs: Sequence[tuple[Cell, Cell]]) -> Finding:
    """Return the time of ids made inside SQLite, over all cases that were measured both ways."""
    means = []
    for cells in zip(*pairs, strict=True):
        rates = [cell.run.rates() for cell in cells]
        common = set.intersection(*map(set, rates))
        means.append({number: geometric_mean(each[number] for each in rates) for number in common})
    # Less done in a second is more time.
    found = Passes(dict(enumerate(means)), ERROR / group.groups).ratio(1, 0)
    conclusive = is_conclusive(found)
    return Finding(
        sentences.made_inside,
        times=geometric_mean(inside.seconds / python.seconds for python, inside in pairs)
        if found is None
        else None,
        ratio=found if conclusive else None,
        unsure=None if conclusive else found,
        unclear=found is not None and not conclusive,
    )
