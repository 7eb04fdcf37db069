"""What the experiment with primary keys says: which type of id to take, which schema, and what each costs.

Times are compared over the passes, each pair against its noise. What a database takes is counted, and is
compared as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from sqlstress.analysis.answers import doubts, is_told, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, ERROR, Group, Tested
from sqlstress.analysis.wording import finite
from sqlstress.experiments.keys.experiment import ID_TYPES, SCHEMAS, Picks
from sqlstress.report import Run, Space
from sqlstress.statistics.compare import Passes

# What was measured of primary keys, to be looked up by schema and type of identifier.


TABLE = "picks"

SpaceFigure = Callable[[Space], float | None]
SPACE: dict[str, SpaceFigure] = {
    "file": lambda space: space.file_bytes,
    "bytes per row": lambda space: space.bytes_per_row(TABLE),
    "table's share": lambda space: space.table_alone(TABLE).share,
    "indices' share": lambda space: space.indices_of(TABLE).share,
    "table's fan-out": lambda space: space.table_alone(TABLE).fan_out,
    "indices' fan-out": lambda space: space.indices_of(TABLE).fan_out,
}
"""What is told of the space: sizes in bytes, shares of the file's pages from 0 to 1."""


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


class Cells:
    """The cells of a group, in the order of its runs."""

    def __init__(self, group: Group) -> None:
        self.all = tuple(cell for run in group.runs if (cell := cell_of(run)))
        self._by_place = {(cell.picks, cell.processes): cell for cell in self.all}

    def twin(self, of: Cell, **changes: str) -> Cell | None:
        """Return the cell that differs from another one in this only, such as id_type="uuid4"."""
        return self._by_place.get((replace(of.picks, **changes), of.processes))  # type: ignore[arg-type]


def cell_of(run: Run) -> Cell | None:
    """Return the figures of a run; None where they can't be believed."""
    trial = run.typical()
    if trial is None or trial.error is not None or run.verdict.status == "failed" or run.case.spec is None:
        return None
    seconds, rows_per_s = finite(trial.seconds), finite(trial.rows_per_s)
    if not seconds or seconds < 0 or rows_per_s is None:
        return None
    return Cell(run, run.case.spec, run.case.concurrency, seconds, rows_per_s, trial.space)


def ratio(cell: Cell | None, base: Cell | None, figure: str) -> float | None:
    """Return a cell's figure over that of another one."""
    over, under = (one.figure(figure) if one else None for one in (cell, base))
    return over / under if over is not None and under else None


# What it costs to make ids by a function inside SQLite.


Pair = tuple[Cell, Cell]
"""The same case, with ids made by Python and made inside SQLite."""


def pairs_of(cells: Cells) -> list[Pair]:
    """Return the cases that were measured both ways; but for integers, which need no function there."""
    return [
        (twin, cell)
        for cell in cells.all
        if cell.picks.made_by == "sqlite" and cell.picks.id_type != "int"
        if (twin := cells.twin(cell, made_by="python"))
    ]


def made_inside(group: Group, pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Yield how long it took inside SQLite, over all cases that were measured both ways."""
    if pairs:
        yield Finding("made-inside", took=_took(group, pairs))


def _took(group: Group, pairs: Sequence[Pair]) -> Finding:
    python, inside = (_means([pair[place].run for pair in pairs]) for place in (0, 1))
    # Less done in a second is more time.
    found = Passes({"python": python, "inside": inside}, ERROR / group.groups).ratio("inside", "python")
    if found is None:
        return Finding(
            "inside-took", times=geometric_mean(each.seconds / twin.seconds for twin, each in pairs)
        )
    if is_told(found):
        return Finding("inside-compared", ratio=found)
    return Finding("inside-unclear", ratio=found, unclear=True)


def _means(runs: Sequence[Run]) -> dict[int, float]:
    """Return the mean of all runs in each pass that all of them have."""
    rates = [run.rates() for run in runs]
    common = set.intersection(*map(set, rates))
    return {number: geometric_mean(own[number] for own in rates) for number in common}


# Which type of identifier to take in a schema, by what the passes tell of time and by the space of each.


PREFERRED = ("uuid7", "ulid-monotonic", "ulid", "uuid4")
"""Types that every process can make by itself. Of those that time and space don't tell apart the first is
advised: it is a standard, and says when a row was made."""


def advice(schema: str, by_type: Mapping[str, Cell], tested: Tested) -> Finding:
    """Return what to take in a schema, and what it costs beside uuid4, which is there."""
    base, numbers, chosen = by_type["uuid4"], by_type.get("int"), _chosen(by_type, tested)
    takes_int = numbers is not None and not tested.is_less(numbers.run, chosen.run)
    return Finding(
        "id-type",
        schema=schema,
        int_cost=_cost(numbers, base, tested) if numbers and takes_int else None,
        has_int=takes_int,
        chosen=_type_named(chosen, base, tested),
        unclear=tuple(
            other.picks.id_type
            for id_type in PREFERRED
            if (other := by_type.get(id_type)) and other not in (chosen, base)
            if not tested.adds_little(chosen.run, other.run)
        ),
    )


def _chosen(by_type: Mapping[str, Cell], tested: Tested) -> Cell:
    """Return the first type to which no other is clearly better: in time beyond doubt, or in space."""
    own = [by_type[id_type] for id_type in PREFERRED if id_type in by_type]
    quick = [cell for cell in own if not any(_is_quicker(other, cell, tested) for other in own)]
    least = min((size for cell in quick if (size := cell.figure("file"))), default=0.0)
    return next((cell for cell in quick if (cell.figure("file") or 0.0) * (1 - EQUAL) <= least), quick[0])


def _is_quicker(cell: Cell, other: Cell, tested: Tested) -> bool:
    """Say whether a cell is quicker than another one by more than EQUAL, beyond doubt."""
    found = None if cell is other else tested.ratio(other.run, cell.run)
    return found is not None and found.low > 1 / (1 - EQUAL)


def _type_named(chosen: Cell, base: Cell, tested: Tested) -> Finding:
    if chosen is base:
        return Finding("type-base")
    dated = not tested.is_less(base.run, chosen.run)
    return Finding("type-chosen", type=chosen.picks.id_type, dated=dated, cost=_cost(chosen, base, tested))


def _cost(cell: Cell, base: Cell, tested: Tested) -> Finding:
    """Return what a cell costs beside uuid4."""
    return Finding("type-cost", time=_time(cell, base, tested), file=ratio(cell, base, "file"))


def _time(cell: Cell, base: Cell, tested: Tested) -> Finding:
    found = tested.ratio(cell.run, base.run)
    if found is None or not is_told(found):
        return Finding("type-time-unclear", unclear=True)
    if found.is_within(EQUAL):
        return Finding("type-time-equal")
    return Finding("type-time", ratio=found)


ORDER = ("uuid7", "ulid-monotonic", "ulid", "uuid4", "int")
UNIQUE = ("pair-norowid", "pair-rowid")
"""The schemas that keep a user from picking an item twice."""
_BYTES_IN_MB = 1e6


def keys(group: Group) -> Iterator[Finding]:
    """Yield what a group says, as far as it has measured what must be compared for it."""
    cells = Cells(group)
    usual, inside = _usual(cells), pairs_of(cells)
    # Types and schemas are tested together, ids made inside SQLite apart: all of it is to hold together.
    shared = replace(group, groups=group.groups * (1 + bool(inside)))
    tested = shared.tested([cell.run for cell in usual]) if usual else None
    found = [*_types(usual, tested), *_schemas(usual, tested), *made_inside(shared, inside)]
    yield from found
    yield from doubts(tested, found, group.case)


def _usual(cells: Cells) -> list[Cell]:
    """Return the cells of the largest number of processes with ids that Python has made."""
    most = max((cell.processes for cell in cells.all), default=0)
    return [cell for cell in cells.all if cell.processes == most and cell.picks.made_by == "python"]


def _types(usual: Sequence[Cell], tested: Tested | None) -> Iterator[Finding]:
    compared = {}
    for schema in SCHEMAS:
        by_type = {cell.picks.id_type: cell for cell in usual if cell.picks.schema == schema}
        if "uuid4" in by_type and len(by_type.keys() & {*ID_TYPES}) > 1:
            compared[schema] = by_type
    if not compared:
        return
    if tested is None:
        yield _least(compared)
        return
    for schema, by_type in compared.items():
        yield advice(schema, by_type, tested)


def _least(compared: Mapping[str, Mapping[str, Cell]]) -> Finding:
    """Return which type took least in each schema, where single trials tell no more."""
    told = []
    for schema, by_type in compared.items():
        quickest = min(by_type.values(), key=lambda cell: cell.seconds)
        smallest = min(by_type.values(), key=lambda cell: cell.figure("file") or float("inf"))
        told.append(
            Finding(
                "type-least",
                schema=schema,
                quickest=quickest.picks.id_type,
                seconds=float(quickest.seconds),
                smallest=None if smallest is quickest else smallest.picks.id_type,
                file=ratio(smallest, by_type["uuid4"], "file") or None,
            )
        )
    return Finding("id-type-least", schemas=tuple(told))


def _schemas(usual: Sequence[Cell], tested: Tested | None) -> Iterator[Finding]:
    by_schema = _of_one_type(usual)
    if len(by_schema) < 2:
        return
    small = _smallest(by_schema)
    yield Finding(
        "schema",
        type=by_schema[0].picks.id_type,
        quickest=_quickest(by_schema, tested),
        smallest=tuple(cell.picks.schema for cell in small),
        about=len(small) > 1,
        megabytes=(small[0].figure("file") or 0.0) / _BYTES_IN_MB if small else None,
        unique=_unique(by_schema, small),
    )


def _of_one_type(usual: Sequence[Cell]) -> list[Cell]:
    """Return the cells of the type that was measured in most schemas."""
    by_type = {id_type: [cell for cell in usual if cell.picks.id_type == id_type] for id_type in ORDER}
    return max(by_type.values(), key=len)


def _smallest(by_schema: Sequence[Cell]) -> list[Cell]:
    """Return the schema that takes least space, and after it those that take about as much."""
    sized = [(size, cell) for cell in by_schema if (size := cell.figure("file"))]
    least = min((size for size, _ in sized), default=0.0)
    near = [each for each in sized if each[0] * (1 - EQUAL) <= least]
    return [cell for _, cell in sorted(near, key=lambda each: each[0])]


def _quickest(by_schema: Sequence[Cell], tested: Tested | None) -> Finding:
    if tested is None:
        least = min(by_schema, key=lambda cell: cell.seconds)
        return Finding("schema-least", schema=least.picks.schema, seconds=float(least.seconds))
    lead = leaders(tested, [cell.run for cell in by_schema])
    near = [cell for cell in by_schema if any(cell.run is run for run in lead.runs)]
    return Finding(
        "schemas-lead",
        schemas=tuple(cell.picks.schema for cell in near),
        about=len(near) > 1,
        seconds=float(next(cell.seconds for cell in near if cell.run is lead.best)),
        equal=len(near) > 1 and lead.equal,
        unclear=lead.unclear,
    )


def _unique(by_schema: Sequence[Cell], small: Sequence[Cell]) -> Finding:
    """Return what it costs that no pick can be there twice."""
    unique = [cell for cell in by_schema if cell.picks.schema in UNIQUE]
    if not unique:
        return Finding("unique-unmeasured", schemas=UNIQUE)
    least = small[0] if small else None
    return Finding(
        "unique",
        schemas=tuple(cell.picks.schema for cell in unique),
        one=len(unique) == 1,
        costs=tuple(
            Finding("schema-costs", schema=cell.picks.schema, times=value)
            for cell in unique
            if cell not in small and (value := ratio(cell, least, "file") if least else None) is not None
        ),
    )


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


@dataclass(frozen=True, slots=True)
class Beside:
    """A published figure, and the same one here."""

    published: Published
    here: float


def beside_published(group: Group) -> Iterator[Beside]:
    """Yield the published figures for which the group has one of its own; none beside themselves."""
    picks = group.case.spec
    if picks is None or picks.items != Picks("", "").items:
        return
    cells = Cells(group)
    for published in PUBLISHED:
        if published.load == (picks.users, picks.picks):
            here = _here(published, picks, cells)
            if here is not None:
                yield Beside(published, here)


def _here(published: Published, picks: Picks, cells: Cells) -> float | None:
    cell = _cell(published.schema, published.id_type, cells)
    if cell is None:
        return None
    if published.beside is None:
        return cell.figure(published.figure)
    schema, id_type = published.beside
    return ratio(cell, cells.twin(cell, schema=schema, id_type=id_type), published.figure)


def _cell(schema: str, id_type: str, cells: Cells) -> Cell | None:
    found = [
        cell
        for cell in cells.all
        if (cell.picks.schema, cell.picks.id_type, cell.picks.made_by) == (schema, id_type, "python")
        and cell.processes
    ]
    return next((cell for cell in found if cell.processes == WRITERS), found[0] if found else None)
