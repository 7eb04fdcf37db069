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

    def everything(self) -> Portion:
        """Return all tables and indices."""
        return self._portion(lambda tree: True)

    def table_with_indices(self, table: str) -> Portion:
        """Return "Table X and all its indices". Raises KeyError without such a table."""
        return self._portion(lambda tree: tree.table == self._known(table))

    def table_alone(self, table: str) -> Portion:
        """Return "Table X w/o any indices". Raises KeyError without such a table."""
        return self._portion(lambda tree: tree.name == self._known(table))

    def indices_of(self, table: str) -> Portion:
        """Return "Indices of table X", which may be none. Raises KeyError without such a table."""
        return self._portion(lambda tree: tree.table == self._known(table) and tree.is_index)

    def bytes_per_row(self, table: str) -> float | None:
        """Return the bytes of the pages of a table and its indices, by row; None without rows."""
        rows = self.table_alone(table).entries
        return self.table_with_indices(table).storage_bytes / rows if rows else None

    def _portion(self, belongs: Callable[[TreeSpace], bool]) -> Portion:
        if self.page_size is None or self.page_count is None:
            raise KeyError("of the file only its size is known")
        return Portion(self.page_size, self.page_count, tuple(filter(belongs, self.trees)))

    def _known(self, table: str) -> str:
        if not any(tree.name == table and not tree.is_index for tree in self.trees):
            raise KeyError(f"there is no table {table}")
        return table


@dataclass(frozen=True, slots=True)
class Portion:
    """Some b-trees of a file together."""

    page_size: int
    """Size of a page, in bytes."""
    page_count: int
    """Pages of the whole database."""
    trees: tuple[TreeSpace, ...]
    """Those that are added up."""

    @property
    def leaf_pages(self) -> int:
        """Primary pages used: those without children."""
        return sum(tree.leaf_pages for tree in self.trees)

    @property
    def internal_pages(self) -> int:
        """Index pages used: those with children."""
        return sum(tree.internal_pages for tree in self.trees)

    @property
    def overflow_pages(self) -> int:
        """Overflow pages used."""
        return sum(tree.overflow_pages for tree in self.trees)

    @property
    def pages(self) -> int:
        """Total pages used."""
        return sum(tree.pages for tree in self.trees)

    @property
    def share(self) -> float:
        """Share of the database's pages, 0 to 1."""
        return self.pages / self.page_count

    @property
    def storage_bytes(self) -> int:
        """Bytes of storage consumed: the pages, whole."""
        return self.pages * self.page_size

    @property
    def entries(self) -> int:
        """Rows and keys."""
        return sum(tree.entries for tree in self.trees)

    @property
    def overflowing_entries(self) -> int:
        """Entries that do not fit on one page."""
        return sum(tree.overflowing_entries for tree in self.trees)

    @property
    def payload_bytes(self) -> int:
        """Bytes of records, their headers included."""
        return sum(tree.payload_bytes for tree in self.trees)

    @property
    def unused_bytes(self) -> int:
        """Bytes on the pages that hold nothing."""
        return sum(tree.unused_bytes for tree in self.trees)

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the b-trees' own: headers of pages, cell pointers, sizes, rowids, links.

        As sqlite3_analyzer has it, the links between the pages of one entry's overflow count twice.
        """
        links = 4 * (self.overflow_pages - self.overflowing_entries)
        return self.storage_bytes - self.payload_bytes - self.unused_bytes + links

    def per_entry(self, total: int) -> float | None:
        """Return an average by entry, such as that of `payload_bytes`; None without entries."""
        return total / self.entries if self.entries else None

    @property
    def fan_out(self) -> int | None:
        """Average fan-out: children of an internal page, rounded down; None without internal pages.

        Every page but a root is a child of one. sqlite3_analyzer leaves out the tables' roots only, so an
        index counts one child too many.
        """
        if not self.internal_pages:
            return None
        tables = {tree.table for tree in self.trees if not tree.is_index}
        return (self.leaf_pages + self.internal_pages - len(tables)) // self.internal_pages
