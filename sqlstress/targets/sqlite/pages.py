"""What is known of a database file's b-trees and of each of their pages, however it was found out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from sqlstress.errors import SqlstressError
from sqlstress.report import TreeSpace

LEAF, INTERNAL, OVERFLOW = "leaf", "internal", "overflow"


class DamagedFile(SqlstressError):
    """A database file that contradicts its format, or itself."""

    exit_code = 1


class Tree(NamedTuple):
    """A b-tree, as the schema knows it."""

    name: str
    table: str
    """The table that it belongs to."""
    root: int
    """Its first page."""
    is_index: bool
    keyed: bool
    """Whether it is ordered by keys, as indices and WITHOUT ROWID tables are, and not by rowids."""


SCHEMA = Tree("sqlite_schema", "sqlite_schema", 1, is_index=False, keyed=False)
"""The b-tree that every database has."""


class Page(NamedTuple):
    """A page of a b-tree."""

    number: int
    kind: str
    """LEAF, INTERNAL or OVERFLOW."""
    cells: int
    """Entries that begin here, and on an internal page of a table ordered by rowid, dividers."""
    payload: int
    """Bytes of records here."""
    unused: int
    """Bytes that hold nothing."""
    begins_overflow: bool
    """Whether it is the first page with the rest of some entry."""


def tree_space(tree: Tree, pages: Iterable[Page]) -> TreeSpace:
    """Add up the pages of a b-tree."""
    kinds: Counter[str] = Counter()
    entries = overflowing = payload = unused = 0
    for page in pages:
        kinds[page.kind] += 1
        if tree.keyed or page.kind == LEAF:
            entries += page.cells
        overflowing += page.begins_overflow
        payload += page.payload
        unused += page.unused
    return TreeSpace(
        name=tree.name,
        table=tree.table,
        is_index=tree.is_index,
        entries=entries,
        overflowing_entries=overflowing,
        payload_bytes=payload,
        unused_bytes=unused,
        leaf_pages=kinds[LEAF],
        internal_pages=kinds[INTERNAL],
        overflow_pages=kinds[OVERFLOW],
    )
