"""The pages of a database file, read without SQLite: the header, the free list and the b-trees.

This module measures the space of b-trees if an SQLite library lacks the table dbstat.

Never read a file in a process that has a connection to it: closing the file here would drop the connection's
POSIX locks. The content of a WAL is not read.
Source: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import os
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
    """Whether the b-tree is ordered by keys (an index or a WITHOUT ROWID table) rather than by rowids."""


class BtreePage(NamedTuple):
    """Counts and sizes of one page of a b-tree."""

    number: int
    kind: str
    """Kind of the page: LEAF, INTERNAL or OVERFLOW."""
    cells: int
    """Number of cells: entries, or on an internal page of a rowid table, dividers between child pages."""
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


# The header, the free list, and the pages in use.


HEADER = 100
"""Size of the file header, in bytes. Page 1 begins with the file header, followed by the page header."""
MAGIC = b"SQLite format 3\0"
_LOCK_BYTE = 1 << 30
_LEAST_USABLE = 480
_POINTER = 5
"""Size of an entry of a pointer map page, in bytes."""


class PageFile:
    """Pages of a database file. A page can be claimed (marked as used) only once, so no loop is endless.

    All methods raise DamagedFile.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        header = file.read(HEADER)
        if len(header) < HEADER or not header.startswith(MAGIC):
            raise DamagedFile("it has no SQLite header")
        size, reserved = struct.unpack_from(">H2xB", header, 16)
        self.page_size = 1 << 16 if size == 1 else size
        """Size of a page, in bytes."""
        self.usable = self.page_size - reserved
        """Size of the part of each page that SQLite uses, in bytes."""
        if self.page_size < 512 or self.page_size & (self.page_size - 1) or self.usable < _LEAST_USABLE:
            raise DamagedFile(f"its header says {self.page_size} bytes a page, of them {reserved} reserved")
        in_file = file.seek(0, os.SEEK_END) // self.page_size
        # Versions of SQLite before 3.7.0 do not update the page count, and do not mark it as valid.
        count = int.from_bytes(header[28:32], "big") if header[24:28] == header[92:96] else 0
        if count > in_file:
            raise DamagedFile(f"it should have {count} pages and has {in_file}")
        self.page_count = count or in_file
        """Number of pages of the database."""
        self._taken = bytearray(self.page_count + 1)
        self._taken[0] = True  # Page numbers start at 1.
        lock_page = _LOCK_BYTE // self.page_size + 1
        if lock_page <= self.page_count:
            self.claim(lock_page)
        if header[52:56] != bytes(4):  # With auto_vacuum there are pointer map pages.
            for number in range(2, self.page_count + 1, self.usable // _POINTER + 1):
                self.claim(number + 1 if number == lock_page else number)
        self._claim_free_list(*struct.unpack_from(">II", header, 32))

    def _claim_free_list(self, trunk: int, count: int) -> None:
        claimed = 0
        while trunk:
            data = self.take(trunk)
            number, (trunk, leaves) = trunk, struct.unpack_from(">II", data)
            if leaves > self.usable // 4 - 2:
                raise DamagedFile(f"page {number} of its free list says that it leads to {leaves} pages")
            for leaf in struct.unpack_from(f">{leaves}I", data, 8):
                self.claim(leaf)
            claimed += 1 + leaves
        if claimed != count:
            raise DamagedFile(f"its free list should have {count} pages and has {claimed}")

    def claim(self, number: int) -> None:
        """Mark a page as used. Raises DamagedFile if the page is already marked or does not exist."""
        if not 1 <= number <= self.page_count:
            raise DamagedFile(f"something leads to page {number}, and there are {self.page_count}")
        if self._taken[number]:
            raise DamagedFile(f"page {number} has two uses")
        self._taken[number] = True

    def take(self, number: int) -> bytes:
        """Claim a page and return its content."""
        self.claim(number)
        self._file.seek((number - 1) * self.page_size)
        return self._file.read(self.page_size)

    def check_all_taken(self) -> None:
        """Raise DamagedFile if a page was never claimed: it is neither used nor free."""
        lost = self._taken.count(False)
        if lost:
            raise DamagedFile(f"{lost} of its {self.page_count} pages are neither used nor free")


# The walk through the pages of the b-trees.


_KINDS = {(True, 0x02): INTERNAL, (True, 0x0A): LEAF, (False, 0x05): INTERNAL, (False, 0x0D): LEAF}
"""Kind of a page, by (`Tree.keyed`, first byte of the page)."""
_PAGE_HEADER = struct.Struct(">BHHHB")


def measure_trees(path: Path, trees: tuple[Tree, ...]) -> tuple[TreeSpace, ...]:
    """Return the space that each b-tree takes. Raises DamagedFile if a page is neither used nor free.

    Also raises OSError.
    """
    with path.open("rb") as file:
        database = PageFile(file)
        spaces = tuple(tree_space(tree, pages(database, tree)) for tree in trees)
        database.check_all_taken()
        return spaces


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
    """Return a page, its child pages, and the first page and bytes of each record's overflow."""
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
    is_ordered = pointers_end <= content <= min(offsets, default=content)
    if not is_ordered or pointers_end + payload + unused > file.usable:
        raise DamagedFile(f"page {number} holds more than a page can")
    return BtreePage(number, kind, cells, payload, unused, False), children, overflows


def _payload(
    data: bytes, entries: Sequence[int], usable: int, keyed: bool
) -> tuple[int, list[tuple[int, int]]]:
    """Return the bytes of records on a page, and the first page and bytes of each record's overflow.

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
    """Return the number of bytes that a record of `size` bytes has in its cell. Its other bytes are on
    overflow pages."""
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
