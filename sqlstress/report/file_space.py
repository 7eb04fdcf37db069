"""Space of a database file, computed as sqlite3_analyzer does.

Source: tool/spaceanal.tcl of SQLite. A section of its report ("Table T and all its indices")
corresponds to a `Portion`: the sum of some b-trees of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeSpace:
    """Space of one b-tree: a table or an index."""

    name: str
    """Name of the table or index; the name of the schema table is sqlite_schema."""
    table: str
    """Table of the index; for a table its own name."""
    is_index: bool
    """Whether the b-tree is an index. The only b-tree of a WITHOUT ROWID table counts as the table."""
    entries: int
    """Number of rows of the table, or of keys of the index."""
    overflowing_entries: int
    """Number of entries that do not fit on one page."""
    payload_bytes: int
    """Size of the records with their headers, in bytes."""
    unused_bytes: int
    """Unused space on the pages of the b-tree, in bytes."""
    leaf_pages: int
    """Number of pages without children."""
    internal_pages: int
    """Number of pages with children."""
    overflow_pages: int
    """Number of pages with the rest of entries that do not fit on one page."""

    @property
    def pages(self) -> int:
        """Number of pages of the b-tree."""
        return self.leaf_pages + self.internal_pages + self.overflow_pages


@dataclass(frozen=True, slots=True)
class Space:
    """Pages and b-trees of a database file."""

    file_bytes: int
    """Size of the file, in bytes."""
    page_size: int | None
    """Size of a page, in bytes; this and the next two numbers are None if unknown."""
    page_count: int | None
    """Number of pages of the database."""
    free_pages: int | None
    """Number of pages on the free list."""
    trees: tuple[TreeSpace, ...]
    """All b-trees, sorted by name. Other pages are free, or hold the pointer map or the lock bytes."""

    def table_with_indices(self, table: str) -> Portion:
        """Return "Table X and all its indices". Raises KeyError if there is no such table."""
        return self._portion(table, lambda tree: tree.table == table)

    def table_alone(self, table: str) -> Portion:
        """Return "Table X w/o any indices". Raises KeyError if there is no such table."""
        return self._portion(table, lambda tree: tree.name == table)

    def indices_of(self, table: str) -> Portion:
        """Return "Indices of table X", which may be empty. Raises KeyError if there is no such table."""
        return self._portion(table, lambda tree: tree.table == table and tree.is_index)

    def bytes_per_row(self, table: str) -> float | None:
        """Return the size of a table and its indices per row, in bytes; None if there are no rows."""
        rows = self.table_alone(table).total("entries")
        return self.table_with_indices(table).storage_bytes / rows if rows else None

    def _portion(self, table: str, belongs: Callable[[TreeSpace], bool]) -> Portion:
        if self.page_size is None or self.page_count is None:
            raise KeyError("of the file only its size is known")
        if not any(tree.name == table and not tree.is_index for tree in self.trees):
            raise KeyError(f"there is no table {table}")
        return Portion(self.page_size, self.page_count, tuple(filter(belongs, self.trees)))


@dataclass(frozen=True, slots=True)
class Portion:
    """Sum of some b-trees of a file."""

    page_size: int
    """Size of a page, in bytes."""
    page_count: int
    """Number of pages of the whole database."""
    trees: tuple[TreeSpace, ...]
    """B-trees that are added up."""

    def total(self, figure: str) -> int:
        """Return the sum of an attribute of the b-trees, such as `pages` or `entries`."""
        return sum(getattr(tree, figure) for tree in self.trees)

    @property
    def share(self) -> float:
        """Share of the pages of the database, 0 to 1."""
        return self.total("pages") / self.page_count

    @property
    def storage_bytes(self) -> int:
        """Size of all pages of these b-trees, in bytes."""
        return self.total("pages") * self.page_size

    @property
    def fan_out(self) -> int | None:
        """Average number of children of an internal page, rounded down; None if there are no internal pages.

        Every page except the root is a child. sqlite3_analyzer subtracts the roots of tables only, so an
        index counts one child too many.
        """
        internal = self.total("internal_pages")
        if not internal:
            return None
        tables = {tree.table for tree in self.trees if not tree.is_index}
        return (self.total("leaf_pages") + internal - len(tables)) // internal
