"""The space of a database file, by the formulas of sqlite3_analyzer.

Source: tool/spaceanal.tcl of SQLite. A section of its report ("Table T and all its indices") is a
Portion here: some of the file's b-trees, added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeSpace:
    """What one b-tree takes: a table, or an index."""

    name: str
    """Name of the table or of the index; the schema's own table is sqlite_schema."""
    table: str
    """The table that it belongs to: its own name, if it is one."""
    is_index: bool
    """Whether it is an index. The only b-tree of a WITHOUT ROWID table is the table."""
    entries: int
    """Rows of the table, or keys of the index."""
    overflowing_entries: int
    """Those of them that do not fit on one page."""
    payload_bytes: int
    """Bytes of records, their headers included."""
    unused_bytes: int
    """Bytes on its pages that hold nothing."""
    leaf_pages: int
    """Pages without children."""
    internal_pages: int
    """Pages with children."""
    overflow_pages: int
    """Pages with the rest of entries that do not fit on one."""

    @property
    def pages(self) -> int:
        """All pages of the b-tree."""
        return self.leaf_pages + self.internal_pages + self.overflow_pages


@dataclass(frozen=True, slots=True)
class Space:
    """What a database file is made of."""

    file_bytes: int
    """Size of the file, in bytes."""
    page_size: int | None
    """Size of a page, in bytes; None: not known, as the other counts of pages."""
    page_count: int | None
    """Pages of the database."""
    free_pages: int | None
    """Pages on the free list."""
    trees: tuple[TreeSpace, ...]
    """All b-trees, by name; pages of none are free, map auto_vacuum's pointers, or hold the lock bytes."""

    def table_with_indices(self, table: str) -> Portion:
        """Return "Table X and all its indices". Raises KeyError without such a table."""
        return self._portion(table, lambda tree: tree.table == table)

    def table_alone(self, table: str) -> Portion:
        """Return "Table X w/o any indices". Raises KeyError without such a table."""
        return self._portion(table, lambda tree: tree.name == table)

    def indices_of(self, table: str) -> Portion:
        """Return "Indices of table X", which may be none. Raises KeyError without such a table."""
        return self._portion(table, lambda tree: tree.table == table and tree.is_index)

    def bytes_per_row(self, table: str) -> float | None:
        """Return the bytes of the pages of a table and its indices, by row; None without rows."""
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
    """Some b-trees of a file together."""

    page_size: int
    """Size of a page, in bytes."""
    page_count: int
    """Pages of the whole database."""
    trees: tuple[TreeSpace, ...]
    """Those that are added up."""

    def total(self, figure: str) -> int:
        """Return the sum of a figure of the b-trees, such as their `pages` or `entries`."""
        return sum(getattr(tree, figure) for tree in self.trees)

    @property
    def share(self) -> float:
        """Share of the database's pages, 0 to 1."""
        return self.total("pages") / self.page_count

    @property
    def storage_bytes(self) -> int:
        """Bytes of storage consumed: the pages, whole."""
        return self.total("pages") * self.page_size

    @property
    def fan_out(self) -> int | None:
        """Average fan-out: children of an internal page, rounded down; None without internal pages.

        Every page but a root is a child of one. sqlite3_analyzer leaves out the tables' roots only, so an
        index counts one child too many.
        """
        internal = self.total("internal_pages")
        if not internal:
            return None
        tables = {tree.table for tree in self.trees if not tree.is_index}
        return (self.total("leaf_pages") + internal - len(tables)) // internal
