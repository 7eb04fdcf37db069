"""What a report is shown as, whatever the format: paragraphs, bullets, tables and pictures, in order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or a few."""

    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of it all, in a sentence or two: where figures come first, it closes them."""

    text: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Short paragraphs that belong together: without a gap where there is none needed."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences that stand below each other."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Lines of characters that are a picture: shown as they are, at most 80 wide."""

    lines: tuple[str, ...]


NAME, FIGURE, DETAIL = "name", "figure", "detail"
"""Of columns: it says which row it is; it is what is looked for; it is looked up."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    """What it is called where there is room."""
    heading: tuple[str, str]
    """The same on two short lines."""
    align: str = "right"
    """right or left."""
    role: str = FIGURE
    """NAME, FIGURE or DETAIL: what is seen first where there is room for a few columns."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and their cells."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    """Cells, in the order of the columns."""
    leaving: tuple[str, ...] = ()
    """Names of the columns in the order in which they leave a table that is too wide."""
    marked: frozenset[tuple[int, int]] = frozenset()
    """Cells that stand out, as (row, column)."""

    @property
    def headers(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def alignment(self) -> tuple[str, ...]:
        """Each column's alignment."""
        return tuple(column.align for column in self.columns)

    def narrower(self) -> Table:
        """Return the table without the column that leaves first, if it is there."""
        name, *others = self.leaving
        kept = [index for index, column in enumerate(self.columns) if column.name != name]
        return Table(
            tuple(self.columns[index] for index in kept),
            tuple(tuple(row[index] for index in kept) for row in self.rows),
            tuple(others),
            frozenset((row, kept.index(index)) for row, index in self.marked if index in kept),
        )


Block = Paragraph | Verdict | Lines | Bullets | Picture | Table
