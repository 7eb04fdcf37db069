"""Plots of primary keys: time, and what the table and its indices take."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import processes
from sqlstress.display.plot import Plain, Plot, View, axis, colour, name
from sqlstress.experiments.keys.shown.cells import Cell, Cells

SPACE: tuple[tuple[str, Callable[[Cell], float | None]], ...] = (
    ("table", lambda cell: _part(cell, "table's share")),
    ("indices", lambda cell: _part(cell, "indices' share")),
    ("the rest of the file", lambda cell: _rest(cell)),
    ("the whole file", lambda cell: None if _is_known(cell) else cell.figure("file")),
)


def plots(group: Group) -> Iterator[Plot]:
    """Yield time and space of each type of id, schema by schema."""
    cells = Cells(group).all
    timed = [
        View(
            processes(count) if count else "",
            _times([cell for cell in cells if cell.processes == count]),
            {"xaxis": axis("", type="category"), "yaxis": axis("s", rangemode="tozero"), "barmode": "group"},
        )
        for count in sorted({cell.processes for cell in cells})
    ]
    if timed:
        note = "From the first transaction's begin to the last one's end."
        yield Plot("Time", note, tuple(timed), len(timed) - 1, wide=True)
    sized = _one_each([cell for cell in cells if cell.figure("file")])
    if sized:
        layout = {
            "xaxis": axis("MB", rangemode="tozero"),
            "yaxis": axis("", type="multicategory", autorange="reversed"),
            "barmode": "stack",
            "height": 150 + 20 * len(sized),
        }
        note = "What the table of picks and its indices have of the file."
        yield Plot("Space", note, (View("", _spaces(sized), layout),), wide=True)


def _id(cell: Cell) -> str:
    return name(f"{cell.picks.id_type}{' by SQLite' * (cell.picks.made_by == 'sqlite')}")


def _times(cells: list[Cell]) -> list[Plain]:
    """Return bars for each type, side by side in each schema."""
    found: list[Plain] = []
    for number, id_type in enumerate(dict.fromkeys(map(_id, cells))):
        own = [cell for cell in cells if _id(cell) == id_type]
        found.append(
            {
                **_bars(id_type, number, f"%{{x}}, {id_type}: %{{y:.2f}} s"),
                "x": [name(cell.picks.schema) for cell in own],
                "y": [cell.seconds for cell in own],
            }
        )
    return found


def _spaces(cells: list[Cell]) -> list[Plain]:
    """Return bars that lie, one for each schema and type: their names are long, and there are many."""
    where = [[name(cell.picks.schema) for cell in cells], [_id(cell) for cell in cells]]
    return [
        {
            **_bars(part, number, f"%{{y}}, {part}: %{{x:.2f}} MB"),
            "orientation": "h",
            "x": [(size(cell) or 0.0) / 1e6 for cell in cells],
            "y": where,
        }
        for number, (part, size) in enumerate(SPACE)
        if any(size(cell) is not None for cell in cells)
    ]


def _bars(label: str, number: int, hover: str) -> Plain:
    return {"type": "bar", "name": label, "marker": {"color": colour(number)}, "hovertemplate": hover}


def _one_each(cells: list[Cell]) -> list[Cell]:
    """Return a cell for each schema and type: the number of processes changes no space worth a bar."""
    return list({(cell.picks.schema, _id(cell)): cell for cell in cells}.values())


def _part(cell: Cell, share: str) -> float | None:
    file, of_it = cell.figure("file"), cell.figure(share)
    return None if file is None or of_it is None else file * of_it


def _is_known(cell: Cell) -> bool:
    """Return whether it is known what has which part of the file."""
    return cell.figure("table's share") is not None


def _rest(cell: Cell) -> float | None:
    if not _is_known(cell):
        return None
    file = cell.figure("file") or 0.0
    return max(0.0, file - sum(_part(cell, share) or 0.0 for share in ("table's share", "indices' share")))
