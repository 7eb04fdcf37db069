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
from sqlstress.analysis.group import EQUAL, ERROR, Group, Tested
from sqlstress.experiments.classics.keys import ID_TYPES, SCHEMAS, Picks
from sqlstress.report import Run, Space
from sqlstress.statistics.compare import Passes
from sqlstress.statistics.units import finite

TABLE = "picks"
SPACE: Mapping[str, Callable[[Space], float | None]] = {
    "file": lambda space: space.file_bytes,
    "bytes per row": lambda space: space.bytes_per_row(TABLE),
    "table's share": lambda space: space.table_alone(TABLE).share,
    "indices' share": lambda space: space.indices_of(TABLE).share,
    "table's fan-out": lambda space: space.table_alone(TABLE).fan_out,
    "indices' fan-out": lambda space: space.indices_of(TABLE).fan_out,
}
"""What is shown of the space: sizes in bytes, shares of the file's pages from 0 to 1."""
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
    rows_per_s: float
    space: Space | None

    def figure(self, name: str) -> float | None:
        """Return the figure of a name: "time" (s), "rows/s", or one of SPACE."""
        known = {"time": self.seconds, "rows/s": self.rows_per_s}
        return known[name] if name in known else space_figure(self.space, name)

    @property
    def file(self) -> float:
        """Bytes of the file; 0 where it was not measured."""
        return self.figure("file") or 0.0


def cell_of(run: Run) -> Cell | None:
    """Return the figures of a run; None where they can't be believed."""
    trial = run.shown()
    if trial is None or run.verdict.status == "failed":
        return None
    seconds, rows_per_s = finite(trial.seconds), finite(trial.rows_per_s)
    if not seconds or seconds < 0 or rows_per_s is None:
        return None
    return Cell(run, run.case.spec, run.case.concurrency, seconds, rows_per_s, trial.space)


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
        found.append(Finding("made-inside", took=_inside_took(shared, inside)))
    yield from found
    yield from doubts(tested, found, group.case)


# Which type of identifier to take in a schema, by what the passes tell of time and by the space of each.


def _types(usual: Sequence[Cell], tested: Tested | None) -> Iterator[Finding]:
    compared = {}
    for schema in SCHEMAS:
        by_type = {cell.picks.id_type: cell for cell in usual if cell.picks.schema == schema}
        if "uuid4" in by_type and len(by_type.keys() & {*ID_TYPES}) > 1:
            compared[schema] = by_type
    if tested:
        yield from (_advice(schema, by_type, tested) for schema, by_type in compared.items())
    elif compared:
        yield Finding("id-type-least", schemas=tuple(_least(*each) for each in compared.items()))


def _least(schema: str, by_type: Mapping[str, Cell]) -> Finding:
    """Return which type took least, where single trials tell no more."""
    quickest = min(by_type.values(), key=lambda cell: cell.seconds)
    smallest = min(by_type.values(), key=lambda cell: cell.file or float("inf"))
    return Finding(
        "type-least",
        schema=schema,
        quickest=quickest.picks.id_type,
        seconds=float(quickest.seconds),
        smallest=None if smallest is quickest else smallest.picks.id_type,
        file=ratio(smallest, by_type["uuid4"], "file") or None,
    )


def _advice(schema: str, by_type: Mapping[str, Cell], tested: Tested) -> Finding:
    """Return what to take in a schema, and what it costs beside uuid4, which is there."""
    base, numbers = by_type["uuid4"], by_type.get("int")
    made = [by_type[id_type] for id_type in ORDER if id_type in by_type and id_type != "int"]
    # To the chosen one no other is clearly better: in time beyond doubt, or in space.
    quick = [cell for cell in made if not any(_is_quicker(other, cell, tested) for other in made)]
    least = min((cell.file for cell in quick if cell.file), default=0.0)
    chosen = next((cell for cell in quick if cell.file * (1 - EQUAL) <= least), quick[0])
    takes_int = numbers is not None and not tested.is_less(numbers.run, chosen.run)
    named = Finding("type-base")
    if chosen is not base:
        dated = not tested.is_less(base.run, chosen.run)
        cost = _cost(chosen, base, tested)
        named = Finding("type-chosen", type=chosen.picks.id_type, dated=dated, cost=cost)
    return Finding(
        "id-type",
        schema=schema,
        int_cost=_cost(numbers, base, tested) if numbers and takes_int else None,
        has_int=takes_int,
        chosen=named,
        unclear=tuple(
            other.picks.id_type
            for other in made
            if other not in (chosen, base) and not tested.adds_little(chosen.run, other.run)
        ),
    )


def _is_quicker(cell: Cell, other: Cell, tested: Tested) -> bool:
    """Say whether a cell is quicker than another one by more than EQUAL, beyond doubt."""
    found = None if cell is other else tested.ratio(other.run, cell.run)
    return found is not None and found.low > 1 / (1 - EQUAL)


def _cost(cell: Cell, base: Cell, tested: Tested) -> Finding:
    """Return what a cell costs beside uuid4."""
    found = tested.ratio(cell.run, base.run)
    if found is None or not is_conclusive(found):
        time = Finding("type-time-unclear", unclear=True)
    elif found.is_within(EQUAL):
        time = Finding("type-time-equal")
    else:
        time = Finding("type-time", ratio=found)
    return Finding("type-cost", time=time, file=ratio(cell, base, "file"))


# Which schema to take, by the type that was measured in most of them.


def _schemas(usual: Sequence[Cell], tested: Tested | None) -> Iterator[Finding]:
    by_type = ([cell for cell in usual if cell.picks.id_type == id_type] for id_type in ORDER)
    by_schema = max(by_type, key=len)
    if len(by_schema) < 2:
        return
    # The schema that takes least space, and after it those that take about as much.
    sized = sorted((cell for cell in by_schema if cell.file), key=lambda cell: cell.file)
    small = [cell for cell in sized if cell.file * (1 - EQUAL) <= sized[0].file]
    yield Finding(
        "schema",
        type=by_schema[0].picks.id_type,
        quickest=_quickest(by_schema, tested),
        smallest=tuple(cell.picks.schema for cell in small),
        about=len(small) > 1,
        megabytes=small[0].file / BYTES_IN_MB if small else None,
        unique=_unique(by_schema, small),
    )


def _quickest(by_schema: Sequence[Cell], tested: Tested | None) -> Finding:
    if tested is None:
        least = min(by_schema, key=lambda cell: cell.seconds)
        return Finding("schema-least", schema=least.picks.schema, seconds=float(least.seconds))
    lead = leaders(tested, [cell.run for cell in by_schema])
    near = lead.among(by_schema)
    return Finding(
        "schemas-lead",
        schemas=tuple(cell.picks.schema for cell in near),
        about=len(near) > 1,
        seconds=float(next(cell.seconds for cell in near if cell.run is lead.best)),
        equal=lead.equal,
        unclear=lead.unclear,
    )


def _unique(by_schema: Sequence[Cell], small: Sequence[Cell]) -> Finding:
    """Return what it costs that no pick can be there twice."""
    unique = [cell for cell in by_schema if cell.picks.schema in UNIQUE]
    if not unique:
        return Finding("unique-unmeasured", schemas=UNIQUE)
    return Finding(
        "unique",
        schemas=tuple(cell.picks.schema for cell in unique),
        one=len(unique) == 1,
        costs=tuple(
            Finding("schema-costs", schema=cell.picks.schema, times=value)
            for cell in unique
            if cell not in small and (value := ratio(cell, next(iter(small), None), "file")) is not None
        ),
    )


def _inside_took(group: Group, pairs: Sequence[tuple[Cell, Cell]]) -> Finding:
    """Return how long it took to make ids inside SQLite, over all cases that were measured both ways."""
    means = []
    for cells in zip(*pairs, strict=True):
        rates = [cell.run.rates() for cell in cells]
        common = set.intersection(*map(set, rates))
        means.append({number: geometric_mean(each[number] for each in rates) for number in common})
    # Less done in a second is more time.
    found = Passes(dict(enumerate(means)), ERROR / group.groups).ratio(1, 0)
    if found is None:
        times = geometric_mean(inside.seconds / python.seconds for python, inside in pairs)
        return Finding("inside-took", times=times)
    if is_conclusive(found):
        return Finding("inside-compared", ratio=found)
    return Finding("inside-unclear", ratio=found, unclear=True)


# The published figures that the experiment with primary keys repeats, as data, beside those of a report.
#
# Source: "A One-Part Serialized Mystery, Part 2: The Benchmarks" of 2023-07-15, updated 2023-07-21. Of the
# machine, the number of writers and the rest of the tables it does not tell, so that ratios are worth more
# than times and sizes.


SOURCE = "A One-Part Serialized Mystery, Part 2: The Benchmarks, 2023-07-21"
WRITERS = 4
"""Where several numbers of processes were measured, those of so many stand beside the published ones."""

ONCE = (1000, 100)
FOUR_TIMES = (2000, 200)
"""Users and picks of each of the two loads that were published; the items are always 10,000."""
ROWS = {ONCE: 100_000, FOUR_TIMES: 398_119}
"""Rows that were inserted at each of them: "the 100k records", and as the program printed."""


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of the text."""

    figure: str
    """Name of the figure, as `Cell.figure` knows it."""
    schema: str
    id_type: str
    value: float
    """In seconds, bytes, rows a second, or as a share; or relative to `beside`."""
    beside: tuple[str, str] | None = None
    """Schema and type whose figure is 1, where the text compares."""
    load: tuple[int, int] = ONCE


PUBLISHED = (
    Published("time", "id-rowid", "ulid", 5.7),
    Published("time", "id-rowid", "uuid4", 9.8),
    Published("time", "id-rowid", "ulid", 5.7 / 9.8, ("id-rowid", "uuid4")),
    Published("file", "id-rowid", "ulid", 0.95, ("id-rowid", "uuid4")),
    Published("time", "id-norowid", "ulid", 1.2, ("id-rowid", "ulid")),
    Published("file", "id-norowid", "ulid", 1.05, ("id-rowid", "ulid")),
    Published("indices' fan-out", "id-norowid", "ulid", 0.8, ("id-rowid", "ulid")),
    Published("time", "pair-norowid", "ulid", 6.0),
    Published("file", "pair-norowid", "ulid", 17e6),
    Published("indices' share", "pair-norowid", "ulid", 0.51),
    Published("time", "no-key", "ulid", 5.0),
    Published("file", "no-key", "ulid", 13e6),
    Published("indices' share", "no-key", "ulid", 0.433),
    Published("indices' fan-out", "no-key", "ulid", 106),
    Published("time", "no-key", "ulid", 1.0, ("no-key", "uuid4")),
    Published("file", "no-key", "ulid", 1.0, ("no-key", "uuid4")),
    Published("file", "no-key", "ulid", 13 / 17, ("pair-norowid", "ulid")),
    Published("indices' fan-out", "pair-norowid", "ulid", 0.8, ("no-key", "ulid")),
    Published("file", "pair-rowid", "ulid", 17e6),
    Published("time", "pair-rowid", "ulid", 1.0, ("no-key", "ulid")),
    Published("time", "no-key", "ulid", 20.818506, load=FOUR_TIMES),
    Published("rows/s", "no-key", "ulid", ROWS[FOUR_TIMES] / 20.818506, load=FOUR_TIMES),
)


def beside_published(group: Group) -> Iterator[tuple[Published, float]]:
    """Yield the published figures, and the same ones here; none beside themselves."""
    picks: Picks = group.case.spec
    if picks.items != Picks("", "").items:
        return
    cells = Cells(group)
    for published in PUBLISHED:
        of_case = [
            cell
            for cell in cells.all
            if (cell.picks.schema, cell.picks.id_type) == (published.schema, published.id_type)
            if cell.picks.made_by == "python" and cell.processes
        ]
        if published.load != (picks.users, picks.picks) or not of_case:
            continue
        cell = next((cell for cell in of_case if cell.processes == WRITERS), of_case[0])
        if published.beside is None:
            here = cell.figure(published.figure)
        else:
            schema, id_type = published.beside
            here = ratio(cell, cells.twin(cell, schema=schema, id_type=id_type), published.figure)
        if here is not None:
            yield published, here
