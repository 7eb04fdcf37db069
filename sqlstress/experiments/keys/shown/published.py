"""The published figures that the experiment with primary keys repeats, as data, beside those of a report.

Source: "A One-Part Serialized Mystery, Part 2: The Benchmarks" of 2023-07-15, updated 2023-07-21. Of the
machine, the number of writers and the rest of the tables it does not tell, so that ratios are worth more
than times and sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstress.analysis.group import Group
from sqlstress.experiments.keys.shown.cells import Cell, Cells, ratio
from sqlstress.experiments.keys.spec import Picks

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
