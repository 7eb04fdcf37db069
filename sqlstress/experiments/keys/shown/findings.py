"""What the experiment with primary keys says: which type of id to take, which schema, and what each costs.

Times are compared over the passes, each pair against its noise. What a database takes is counted, and is
compared as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlstress.analysis.comparing import doubts, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group, Tested
from sqlstress.analysis.wording import listing, rounded, times
from sqlstress.experiments.keys.shown.cells import Cell, Cells, ratio
from sqlstress.experiments.keys.shown.inside import made_inside, pairs_of
from sqlstress.experiments.keys.shown.types import advice
from sqlstress.experiments.keys.spec import ID_TYPES, SCHEMAS

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
    yield from doubts(tested, found)


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
        yield Finding("id-type", f"{schema}: {advice(by_type, tested)}.")


def _least(compared: Mapping[str, Mapping[str, Cell]]) -> Finding:
    """Say which type took least in each schema, where single trials tell no more."""
    told = []
    for schema, by_type in compared.items():
        quickest = min(by_type.values(), key=lambda cell: cell.seconds)
        smallest = min(by_type.values(), key=lambda cell: cell.figure("file") or float("inf"))
        file = ratio(smallest, by_type["uuid4"], "file")
        other = "" if smallest is quickest else f"{smallest.picks.id_type} "
        space = f" and {other}least space ({rounded(file, 2)} of uuid4's)" if file else ""
        time = f"{quickest.picks.id_type} took least time ({rounded(quickest.seconds)} s)"
        told.append(f"{schema}: {time}{space}")
    return Finding("id-type", f"{'; '.join(told)}.")


def _schemas(usual: Sequence[Cell], tested: Tested | None) -> Iterator[Finding]:
    by_schema = _of_one_type(usual)
    if len(by_schema) < 2:
        return
    small = _smallest(by_schema)
    told = [_quickest(by_schema, tested)]
    if small:
        size = rounded((small[0].figure("file") or 0.0) / _BYTES_IN_MB)
        about = "about " if len(small) > 1 else ""
        told.append(f"smallest: {_named(small)} ({about}{size} MB)")
    name = by_schema[0].picks.id_type
    yield Finding("schema", f"With {name}, {'; '.join(told)}. {_unique(by_schema, small)}")


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


def _quickest(by_schema: Sequence[Cell], tested: Tested | None) -> str:
    if tested is None:
        least = min(by_schema, key=lambda cell: cell.seconds)
        return f"{_named([least])} took least time ({rounded(least.seconds)} s)"
    lead = leaders(tested, [cell.run for cell in by_schema])
    near = [cell for cell in by_schema if any(cell.run is run for run in lead.runs)]
    seconds = next(cell.seconds for cell in near if cell.run is lead.best)
    return f"quickest: {_named(near)} ({'about ' * (len(near) > 1)}{rounded(seconds)} s){lead.how}"


def _named(cells: Sequence[Cell]) -> str:
    return listing([cell.picks.schema for cell in cells])


def _unique(by_schema: Sequence[Cell], small: Sequence[Cell]) -> str:
    """Say what it costs that no pick can be there twice."""
    unique = [cell for cell in by_schema if cell.picks.schema in UNIQUE]
    if not unique:
        return f"Only {listing(UNIQUE)} keep a pick from being there twice: measure them with --schema."
    least = small[0] if small else None
    told = [
        f"{cell.picks.schema} {times(value)}"
        for cell in unique
        if cell not in small and (value := ratio(cell, least, "file") if least else None) is not None
    ]
    cost = f": {listing(told)} the smallest file" if told else ""
    return f"Only {_named(unique)} keep{'s' * (len(unique) == 1)} a pick from being there twice{cost}."
