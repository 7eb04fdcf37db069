"""Space of tables and indices in a database file, computed like SQLite's sqlite3_analyzer.

Source: tool/spaceanal.tcl of SQLite. A `Portion` has the figures of a section of the tool's report, such as
"Table T and all its indices".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeSpace:
    """Space of one b-tree, which holds a table or an index."""

    name: str
    """Name of the table or index."""
    table: str
    """Name of the index's table; for a table, its own name."""
    is_index: bool
    """Whether the b-tree is an index. A WITHOUT ROWID table counts as a table, not as an index."""
    entries: int
    """Number of rows of the table, or of keys of the index."""
    leaf_pages: int
    """Number of the b-tree's pages without child pages."""
    internal_pages: int
    """Number of the b-tree's pages with child pages."""

    @property
    def pages(self) -> int:
        """Number of all pages of the b-tree."""
        return self.leaf_pages + self.internal_pages


@dataclass(frozen=True, slots=True)
class Space:
    """Pages and b-trees of a database file."""

    file_bytes: int
    """Size of the file, in bytes."""
    page_size: int | None
    """Size of a page, in bytes; None if unknown."""
    page_count: int | None
    """Number of pages of the database; None if unknown."""
    free_pages: int | None
    """Number of pages on the free list; None if unknown."""
    trees: tuple[TreeSpace, ...]
    """All b-trees except the schema's, sorted by name."""

    def table_with_indices(self, table: str) -> Portion:
        """Return the b-trees of a table and its indices. Raise KeyError for an unknown table."""
        return self._portion(table, lambda tree: tree.table == table)

    def table_alone(self, table: str) -> Portion:
        """Return the b-tree of a table without its indices. Raise KeyError for an unknown table."""
        return self._portion(table, lambda tree: tree.name == table)

    def indices_of(self, table: str) -> Portion:
        """Return the b-trees of a table's indices, if any. Raise KeyError for an unknown table."""
        return self._portion(table, lambda tree: tree.table == table and tree.is_index)

    def bytes_per_row(self, table: str) -> float | None:
        """Return the average size of a row with its index entries, in bytes; None for an empty table.

        Raise KeyError for an unknown table.
        """
        rows = self.table_alone(table).total("entries")
        return self.table_with_indices(table).storage_bytes / rows if rows else None

    def _portion(self, table: str, belongs: Callable[[TreeSpace], bool]) -> Portion:
        """Return the b-trees for which `belongs` is true.

        Raise KeyError if `table` is unknown, or if only the size of the file is known.
        """
        if self.page_size is None or self.page_count is None:
            raise KeyError("of the file only its size is known")
        if not any(tree.name == table and not tree.is_index for tree in self.trees):
            raise KeyError(f"there is no table {table}")
        return Portion(self.page_size, self.page_count, tuple(filter(belongs, self.trees)))


@dataclass(frozen=True, slots=True)
class Portion:
    """Some b-trees of a database file, such as a table and its indices, and the space that they take."""

    page_size: int
    page_count: int
    """Number of pages of the whole database."""
    trees: tuple[TreeSpace, ...]

    def total(self, figure: str) -> int:
        """Return the sum of an attribute of the b-trees, such as `pages` or `entries`."""
        return sum(getattr(tree, figure) for tree in self.trees)

    @property
    def share(self) -> float:
        """Share of the database's pages in these b-trees, 0 to 1."""
        return self.total("pages") / self.page_count

    @property
    def storage_bytes(self) -> int:
        """Size of all pages of these b-trees, in bytes."""
        return self.total("pages") * self.page_size

    @property
    def fan_out(self) -> int | None:
        """Average number of children of an internal page, rounded down; None without internal pages.

        All pages but the roots are children. Like sqlite3_analyzer, this counts the roots of indices as
        children, too.
        """
        internal = self.total("internal_pages")
        if not internal:
            return None
        tables = {tree.table for tree in self.trees if not tree.is_index}
        return (self.total("leaf_pages") + internal - len(tables)) // internal
