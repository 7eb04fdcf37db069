"""The b-tree pages of a database file, read without SQLite, to measure the space of b-trees.

For SQLite libraries without the table dbstat. The content of a WAL is not read.

Never read a file in a process that has a connection to it: closing the file here would drop the connection's
POSIX locks.

Source: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sqlstress.errors import SqlstressError
from sqlstress.report import TreeSpace

LEAF, INTERNAL, OVERFLOW = "leaf", "internal", "overflow"


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


class BtreePage(NamedTuple):
    """Counts and sizes of one page of a b-tree."""

    number: int
    kind: str
    """Kind of the page: LEAF, INTERNAL or OVERFLOW."""
    cells: int
    """Number of cells: entries, or dividers on an internal page of a rowid table."""
    payload: int
    """Size of the parts of records that are on this page, in bytes."""
    unused: int
    """Size of the unused space, in bytes."""
    begins_overflow: bool
    """Whether the page is the first overflow page of an entry."""


def tree_space(tree: Tree, pages: Iterable[BtreePage]) -> TreeSpace:
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


HEADER = 100
"""Size of the file header, in bytes. Page 1 begins with this header."""
MAGIC = b"SQLite format 3\0"


class PageFile:
    """Pages of a database file. Each page can be taken only once, so that no walk is endless.

    Callers run SQLite's integrity check first, so the content of pages is not checked again.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Read the file header. Raises DamagedFile."""
        self._file = file
        header = file.read(HEADER)
        if len(header) < HEADER or not header.startswith(MAGIC):
            raise DamagedFile("it has no SQLite header")
        size, reserved = struct.unpack_from(">H2xB", header, 16)
        self.page_size = 1 << 16 if size == 1 else size
        """Size of a page, in bytes."""
        self.usable = self.page_size - reserved
        """Size of the part of each page that SQLite uses, in bytes."""
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


# Walk through the pages of b-trees


_KINDS = {(True, 0x02): INTERNAL, (True, 0x0A): LEAF, (False, 0x05): INTERNAL, (False, 0x0D): LEAF}
"""Kind of a page, by (`Tree.keyed`, first byte of the page)."""
_PAGE_HEADER = struct.Struct(">BHHHB")


def measure_trees(path: Path, trees: tuple[Tree, ...]) -> tuple[TreeSpace, ...]:
    """Return the space that each b-tree takes. Raises DamagedFile and OSError."""
    with path.open("rb") as file:
        database = PageFile(file)
        return tuple(tree_space(tree, pages(database, tree)) for tree in trees)


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the variable-length integer at an offset, and the offset after the integer."""
    value = 0
    for at in range(place, place + 8):
        value = value << 7 | data[at] & 0x7F
        if data[at] < 0x80:
            return value, at + 1
    return value << 8 | data[place + 8], place + 9


def pages(file: PageFile, tree: Tree) -> Iterator[BtreePage]:
    """Yield the pages of a b-tree. Raises DamagedFile."""
    stack = [tree.root]
    while stack:
        number = stack.pop()
        try:
            page, children, overflows = _read(file, number, tree)
        except (IndexError, struct.error) as error:
            raise DamagedFile(f"page {number} leads out of itself") from error
        yield page
        stack += children
        for first, length in overflows:
            yield from _overflow(file, first, length)


def _read(file: PageFile, number: int, tree: Tree) -> tuple[BtreePage, list[int], list[tuple[int, int]]]:
    """Return a page, its child pages, and (first page, bytes) of each record's overflow."""
    data = file.take(number)
    start = HEADER if number == 1 else 0
    first_byte, free_block, cells, content, fragments = _PAGE_HEADER.unpack_from(data, start)
    kind = _KINDS.get((tree.keyed, first_byte))
    if kind is None:
        raise DamagedFile(f"page {number} is not a page of {tree.name}")
    pointers_at = start + (12 if kind == INTERNAL else 8)
    pointers_end = pointers_at + 2 * cells
    offsets = struct.unpack_from(f">{cells}H", data, pointers_at)
    children, entries = list[int](), offsets
    if kind == INTERNAL:
        children = [_number(data, offset) for offset in (*offsets, start + 8)]
        entries = tuple(offset + 4 for offset in offsets) if tree.keyed else ()
    payload, overflows = _payload(data, entries, file.usable, tree.keyed)
    content = content or 1 << 16
    unused = content - pointers_end + fragments
    while free_block:
        next_block, size = struct.unpack_from(">HH", data, free_block)
        if size < 4 or 0 < next_block < free_block + size:
            raise DamagedFile(f"page {number} has free blocks that overlap")
        unused += size
        free_block = next_block
    return BtreePage(number, kind, cells, payload, unused, False), children, overflows


def _payload(
    data: bytes, entries: Sequence[int], usable: int, keyed: bool
) -> tuple[int, list[tuple[int, int]]]:
    """Return the bytes of records on a page, and (first page, bytes) of each record's overflow.

    `entries` has the offset of each entry on the page.
    """
    max_local = _max_local(usable, keyed)
    total = 0
    overflows = []
    for offset in entries:
        size = data[offset]
        if size > 0x7F:
            size, _ = varint(data, offset)
        if size > max_local:
            _, begin = varint(data, offset)
            if not keyed:  # The rowid comes before the record.
                _, begin = varint(data, begin)
            local = local_bytes(size, usable, keyed)
            overflows.append((_number(data, begin + local), size - local))
            size = local
        total += size
    return total, overflows


def _max_local(usable: int, keyed: bool) -> int:
    """Return the size of the largest record that is stored without overflow pages, in bytes."""
    return (usable - 12) * 64 // 255 - 23 if keyed else usable - 35


def local_bytes(size: int, usable: int, keyed: bool) -> int:
    """Return the size of the part of a record outside overflow pages, in bytes.

    `size` is the size of the record, `usable` that of the usable part of a page, in bytes.
    """
    max_local = _max_local(usable, keyed)
    if size <= max_local:
        return size
    min_local = (usable - 12) * 32 // 255 - 23
    local = min_local + (size - min_local) % (usable - 4)
    return local if local <= max_local else min_local


def _overflow(file: PageFile, first: int, length: int) -> Iterator[BtreePage]:
    """Yield the overflow pages of a record: `length` bytes, which begin on page `first`."""
    room = file.usable - 4
    number, left = first, length
    while left > 0:
        data = file.take(number)
        stored = min(left, room)
        yield BtreePage(number, OVERFLOW, 0, stored, room - stored, number == first)
        left -= stored
        number = _number(data, 0)
    if number:
        raise DamagedFile(f"the overflow that begins on page {first} goes on after its end")


def _number(data: bytes, place: int) -> int:
    return int(struct.unpack_from(">I", data, place)[0])
