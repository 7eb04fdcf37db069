"""What the experiment with primary keys says: which type of id to take, which schema, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import listing, percent, rounded, times
from sqlstress.experiments.keys.shown.cells import Cell, Cells, ratio
from sqlstress.experiments.keys.spec import ID_TYPES, SCHEMAS

NEAR = 1 / 3
"""Times that differ by less are as good as each other: on a busy machine trials of one case do. With 0.2 the
advice of one command, given six times, was not the same every time."""
PREFERRED = ("uuid7", "ulid-monotonic", "ulid", "uuid4")
"""Of types as good as each other the first is advised: it is a standard, and says when a row was made."""
UNIQUE = ("pair-norowid", "pair-rowid")
"""The schemas that keep a user from picking an item twice."""
_BYTES_IN_MB = 1e6


def keys(group: Group) -> Iterator[Finding]:
    """Yield what a group says, as far as it has measured what must be compared for it."""
    cells = Cells(group)
    usual = _usual(cells)
    for schema in SCHEMAS:
        yield from _types(schema, {cell.picks.id_type: cell for cell in usual if cell.picks.schema == schema})
    yield from _schemas(usual)
    yield from _made_inside(cells)


def _usual(cells: Cells) -> list[Cell]:
    """Return the cells of the largest number of processes with ids that Python has made."""
    most = max((cell.processes for cell in cells.all), default=0)
    return [cell for cell in cells.all if cell.processes == most and cell.picks.made_by == "python"]


def _types(schema: str, by_type: dict[str, Cell]) -> Iterator[Finding]:
    base = by_type.get("uuid4")
    others = [cell for id_type, cell in by_type.items() if id_type in ID_TYPES and cell is not base]
    if base is None or not others:
        return
    numbers, chosen = by_type.get("int"), _chosen(by_type)
    parts = []
    if numbers and numbers.seconds <= chosen.seconds * (1 + NEAR):
        parts.append(f"take int where one database gives all ids ({_cost(numbers, base)})")
    parts.append(f"{'else ' if parts else 'take '}{_advice(chosen, base)}")
    yield Finding("id-type", f"{schema}: {', '.join(parts)}.")


def _chosen(by_type: dict[str, Cell]) -> Cell:
    """Return the best of those that every process can make by itself."""
    own = [by_type[id_type] for id_type in PREFERRED if id_type in by_type]
    least = min(cell.seconds for cell in own)
    return next(cell for cell in own if cell.seconds <= least * (1 + NEAR))


def _advice(chosen: Cell, base: Cell) -> str:
    if chosen is base:
        return f"uuid4: no other was quicker by more than {percent(NEAR)}"
    name = chosen.picks.id_type
    if chosen.seconds > base.seconds * (1 - NEAR):
        cost = _cost(chosen, base)
        return f"{name}, which says when it was made; it is not clearly quicker than uuid4 ({cost})"
    return f"{name} ({_cost(chosen, base)})"


def _cost(cell: Cell, base: Cell) -> str:
    """Say what a cell costs relative to uuid4."""
    time, file = (ratio(cell, base, figure) for figure in ("time", "file"))
    told = [] if time is None else [f"{rounded(time, 2)} of uuid4's time"]
    told += [] if file is None else [f"{rounded(file, 2)} of its file"]
    return ", ".join(told)


def _schemas(usual: Sequence[Cell]) -> Iterator[Finding]:
    by_schema = _of_one_type(usual)
    if len(by_schema) < 2:
        return
    name = by_schema[0].picks.id_type
    quickest = min(by_schema, key=lambda cell: cell.seconds)
    sized = [cell for cell in by_schema if cell.figure("file")]
    smallest = min(sized, key=lambda cell: cell.figure("file") or 0.0, default=quickest)
    yield Finding("schema", f"With {name}, {_best(quickest, smallest)}. {_unique(by_schema, smallest)}")


def _of_one_type(usual: Sequence[Cell]) -> list[Cell]:
    """Return the cells of the type that was measured in most schemas."""
    by_type = {
        id_type: [cell for cell in usual if cell.picks.id_type == id_type] for id_type in (*PREFERRED, "int")
    }
    return max(by_type.values(), key=len)


def _best(quickest: Cell, smallest: Cell) -> str:
    time = f"the quickest ({rounded(quickest.seconds)} s)"
    size = smallest.figure("file")
    if size is None:
        return f"{quickest.picks.schema} was {time}"
    space = f"the smallest ({rounded(size / _BYTES_IN_MB)} MB)"
    if quickest is smallest:
        return f"{quickest.picks.schema} was {time} and {space}"
    return f"{quickest.picks.schema} was {time}, {smallest.picks.schema} {space}"


def _unique(by_schema: Sequence[Cell], smallest: Cell) -> str:
    """Say what it costs that no pick can be there twice."""
    unique = [cell for cell in by_schema if cell.picks.schema in UNIQUE]
    if not unique:
        return f"Only {listing(UNIQUE)} keep a pick from being there twice: measure them with --schema."
    if smallest in unique:
        return "It keeps a pick from being there twice."
    told = [
        f"{cell.picks.schema} {times(value)}"
        for cell in unique
        if (value := ratio(cell, smallest, "file")) is not None
    ]
    cost = f": {listing(told)} its file" if told else ""
    names = listing([cell.picks.schema for cell in unique])
    return f"Only {names} keep{'s' * (len(unique) == 1)} a pick from being there twice{cost}."


def _made_inside(cells: Cells) -> Iterator[Finding]:
    """Yield what it costs to make ids by a function inside SQLite; integers it needs none for."""
    ratios = [
        value
        for cell in cells.all
        if cell.picks.made_by == "sqlite" and cell.picks.id_type != "int"
        if (value := ratio(cell, cells.twin(cell, made_by="python"), "time"))
    ]
    if ratios:
        mean = exp(sum(map(log, ratios)) / len(ratios))
        spread = f" ({rounded(min(ratios), 2)} to {rounded(max(ratios), 2)})" if len(ratios) > 1 else ""
        yield Finding(
            "made-inside",
            f"With ids made inside SQLite, by a function of Python, it took {times(mean)} as long{spread}.",
        )
