"""The b-tree pages of a database file, read without SQLite, to measure the space of b-trees.

SQLite's table dbstat counts pages, too, but many builds of SQLite lack it.

Never read a file in a process that has a connection to it: closing the file here would drop the connection's
POSIX locks. The content of a WAL is not read. Overflow pages, on which a long entry continues, are not read.
Source: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sqlstress.errors import SqlstressError
from sqlstress.report import TreeSpace

LEAF, INTERNAL = "leaf", "internal"
"""Kinds of pages: a leaf has no child pages."""


class DamagedFile(SqlstressError):
    """The database file is inconsistent, or it violates the file format."""

    exit_code = 1


class Tree(NamedTuple):
    """A b-tree (a table or an index), as the schema describes it."""

    name: str
    table: str
    """Name of the table to which the b-tree belongs."""
    root: int
    """Number of the root page."""
    is_index: bool
    keyed: bool
    """Whether keys order the b-tree (an index or a WITHOUT ROWID table), not rowids."""


HEADER = 100
"""Size of the file header, at the beginning of page 1, in bytes."""
MAGIC = b"SQLite format 3\0"


class PageFile:
    """Pages of a database file. Each page can be taken only once, so that no walk of a b-tree is endless.

    Callers run SQLite's integrity check first, so the content of pages is not checked again.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Read the file header. Raises DamagedFile."""
        self._file = file
        header = file.read(HEADER)
        if len(header) < HEADER or not header.startswith(MAGIC):
            raise DamagedFile("it has no SQLite header")
        (size,) = struct.unpack_from(">H", header, 16)
        self.page_size = 1 << 16 if size == 1 else size
        """Size of a page, in bytes."""
        self._taken: set[int] = set()

    def take(self, number: int) -> bytes:
        """Return the content of a page. Raises DamagedFile if the page was taken or does not exist."""
        if number in self._taken:
            raise DamagedFile(f"page {number} has two uses")
        self._taken.add(number)
        self._file.seek(max(0, number - 1) * self.page_size)
        content = self._file.read(self.page_size)
        if number < 1 or len(content) < self.page_size:
            raise DamagedFile(f"page {number} does not exist")
        return content


_KINDS = {(True, 0x02): INTERNAL, (True, 0x0A): LEAF, (False, 0x05): INTERNAL, (False, 0x0D): LEAF}
"""Kind of a page, by (`Tree.keyed`, first byte of the page)."""


def measure_trees(path: Path, trees: Sequence[Tree]) -> tuple[TreeSpace, ...]:
    """Return the space of the b-trees of a database file. Raises DamagedFile."""
    with path.open("rb") as file:
        database = PageFile(file)
        return tuple(_measure(database, tree) for tree in trees)


def _measure(file: PageFile, tree: Tree) -> TreeSpace:
    pages: Counter[str] = Counter()
    entries = 0
    waiting = [tree.root]
    while waiting:
        number = waiting.pop()
        data = file.take(number)
        try:
            first_byte, cells = struct.unpack_from(">B2xH", data)
            kind = _KINDS.get((tree.keyed, first_byte))
            offsets = struct.unpack_from(f">{cells}H", data, 12 if kind == INTERNAL else 8)
            if kind == INTERNAL:
                waiting += (struct.unpack_from(">I", data, offset)[0] for offset in (*offsets, 8))
        except struct.error as error:
            raise DamagedFile(f"page {number} leads out of itself") from error
        if kind is None:
            raise DamagedFile(f"page {number} is not a page of {tree.name}")
        pages[kind] += 1
        # The cells of an internal page of a rowid table only separate its child pages.
        entries += cells if tree.keyed or kind == LEAF else 0
    return TreeSpace(tree.name, tree.table, tree.is_index, entries, pages[LEAF], pages[INTERNAL])
