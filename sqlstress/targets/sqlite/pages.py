"""The pages of a database's b-trees, read without SQLite: what dbstat answers where it is there.

Source: https://www.sqlite.org/fileformat2.html#b_tree_pages
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


# A database file as pages, read without SQLite: its header, its free list, and which pages are taken.
#
# Never in a process that has a connection to the file: closing it here would drop that one's POSIX
# locks. What lies in a WAL is not seen.
#
# Source: https://www.sqlite.org/fileformat2.html


HEADER = 100
"""Bytes of the file's header, on page 1 before that page's own."""
MAGIC = b"SQLite format 3\0"
_LOCK_BYTE = 1 << 30
_LEAST_USABLE = 480
_POINTER = 5
"""Bytes of a pointer map for each page."""


class PageFile:
    """The pages of a database, each to be taken once: what two places lead to is damage.

    So no walk is endless, whatever the file holds. Raises DamagedFile.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        header = file.read(HEADER)
        if len(header) < HEADER or not header.startswith(MAGIC):
            raise DamagedFile("it has no SQLite header")
        size, reserved = struct.unpack_from(">H2xB", header, 16)
        self.page_size = 1 << 16 if size == 1 else size
        """Bytes of a page."""
        self.usable = self.page_size - reserved
        """Bytes of a page that SQLite uses."""
        if self.page_size < 512 or self.page_size & (self.page_size - 1) or self.usable < _LEAST_USABLE:
            raise DamagedFile(f"its header says {self.page_size} bytes a page, of them {reserved} reserved")
        in_file = file.seek(0, os.SEEK_END) // self.page_size
        # An SQLite before 3.7.0 left the count as it was, and did not mark it as valid.
        count = int.from_bytes(header[28:32], "big") if header[24:28] == header[92:96] else 0
        if count > in_file:
            raise DamagedFile(f"it should have {count} pages and has {in_file}")
        self.page_count = count or in_file
        """Pages of the database."""
        self._taken = bytearray(self.page_count + 1)
        self._taken[0] = True  # pages are numbered from 1
        lock_page = _LOCK_BYTE // self.page_size + 1
        if lock_page <= self.page_count:
            self.claim(lock_page)
        if header[52:56] != bytes(4):  # with auto_vacuum there are pointer maps
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
        if not 1 <= number <= self.page_count:
            raise DamagedFile(f"something leads to page {number}, and there are {self.page_count}")
        if self._taken[number]:
            raise DamagedFile(f"page {number} has two uses")
        self._taken[number] = True

    def take(self, number: int) -> bytes:
        self.claim(number)
        return self.read(number)

    def read(self, number: int) -> bytes:
        self._file.seek((number - 1) * self.page_size)
        return self._file.read(self.page_size)

    def check_all_taken(self) -> None:
        lost = self._taken.count(False)
        if lost:
            raise DamagedFile(f"{lost} of its {self.page_count} pages are neither used nor free")


# The walk through the b-trees.
#
# Source: https://www.sqlite.org/fileformat2.html#record_format


_KINDS = {(True, 0x02): INTERNAL, (True, 0x0A): LEAF, (False, 0x05): INTERNAL, (False, 0x0D): LEAF}
"""Kinds of pages by whether their b-tree is ordered by keys, and by their first byte."""
_PAGE_HEADER = struct.Struct(">BHHHB")
_FIXED = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of a column by its type: NULL, integers of six sizes, a float, and the constants 0 and 1."""


def walk(path: Path, trees: tuple[Tree, ...]) -> tuple[TreeSpace, ...]:
    """Add up each b-tree of a file, and make sure that together they are all of it.

    Not in a process that has a connection to the file; what lies in a WAL is not seen. Raises
    DamagedFile, OSError.
    """
    with path.open("rb") as file:
        database = PageFile(file)
        spaces = tuple(tree_space(tree, pages(database, tree)) for tree in trees)
        database.check_all_taken()
        return spaces


def complaints(path: Path, trees: tuple[Tree, ...]) -> list[str]:
    """Return what is wrong with some b-trees of a file, as far as a walk goes; nothing when nothing is seen.

    Not in a process that has a connection to the file. Raises OSError.
    """
    with path.open("rb") as file:
        try:
            database = PageFile(file)
            for tree in trees:
                for page in pages(database, tree):
                    if page.kind != OVERFLOW and (tree.keyed or page.kind == LEAF):
                        _check_records(database, page, tree)
        except DamagedFile as error:
            return [str(error)]
    return []


def _check_records(file: PageFile, page: Page, tree: Tree) -> None:
    """Raise DamagedFile if a record on a page is not what its header says."""
    data = file.read(page.number)
    start = HEADER if page.number == 1 else 0
    child = 4 if page.kind == INTERNAL else 0
    places = struct.unpack_from(f">{page.cells}H", data, start + (12 if child else 8))
    for cell, place in enumerate(places):
        size, begin = varint(data, place + child)
        if not tree.keyed:
            _, begin = varint(data, begin)
        stored = data[begin : begin + stored_here(size, file.usable, tree.keyed)]
        try:
            sound = _described(stored, size) == size
        except IndexError:
            sound = False
        if not sound:
            raise DamagedFile(f"cell {cell} of page {page.number} of {tree.name} holds no record")


def _described(stored: bytes, size: int) -> int:
    """Return how many bytes the header of a record describes, its own included; it should be its size.

    `stored` is what of it stands in its cell. Raises IndexError.
    """
    header, at = varint(stored, 0)
    if len(stored) < header <= size:
        return size  # a header with overflow is not looked at
    total = at
    while at < header:
        kind, following = varint(stored, at)
        # The types 10 and 11 are not used.
        total += following - at + (_FIXED[kind] if kind < len(_FIXED) else (kind - 12) // 2)
        at = following
    return total


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    value = 0
    for at in range(place, place + 8):
        value = value << 7 | data[at] & 0x7F
        if data[at] < 0x80:
            return value, at + 1
    return value << 8 | data[place + 8], place + 9


def pages(file: PageFile, tree: Tree) -> Iterator[Page]:
    """Yield the pages of a b-tree. Raises DamagedFile."""
    waiting = [tree.root]
    while waiting:
        number = waiting.pop()
        try:
            page, children, overflows = _read(file, number, tree)
        except (IndexError, struct.error) as error:
            raise DamagedFile(f"page {number} leads out of itself") from error
        yield page
        waiting += children
        for first, length in overflows:
            yield from _overflow(file, first, length)


def _read(file: PageFile, number: int, tree: Tree) -> tuple[Page, list[int], list[tuple[int, int]]]:
    """Return a page, its children, and the first page and the bytes of the overflow of each entry."""
    data = file.take(number)
    start = HEADER if number == 1 else 0
    first_byte, free_block, cells, content, fragments = _PAGE_HEADER.unpack_from(data, start)
    kind = _KINDS.get((tree.keyed, first_byte))
    if kind is None:
        raise DamagedFile(f"page {number} is not a page of {tree.name}")
    places_at = start + (12 if kind == INTERNAL else 8)
    places_end = places_at + 2 * cells
    places = struct.unpack_from(f">{cells}H", data, places_at)
    children, entries = list[int](), places
    if kind == INTERNAL:
        children = [_number(data, place) for place in (*places, start + 8)]
        entries = tuple(place + 4 for place in places) if tree.keyed else ()
    payload, overflows = _payload(data, entries, file.usable, tree.keyed)
    content = content or 1 << 16
    unused = content - places_end + fragments
    while free_block:
        following, size = struct.unpack_from(">HH", data, free_block)
        if size < 4 or 0 < following < free_block + size:
            raise DamagedFile(f"page {number} has free blocks that overlap")
        unused += size
        free_block = following
    ordered = places_end <= content <= min(places, default=content)
    if not ordered or places_end + payload + unused > file.usable:
        raise DamagedFile(f"page {number} holds more than a page can")
    return Page(number, kind, cells, payload, unused, False), children, overflows


def _payload(
    data: bytes, entries: Sequence[int], usable: int, keyed: bool
) -> tuple[int, list[tuple[int, int]]]:
    """Return the bytes of records on a page, and the overflow of its entries."""
    most = _most_stored(usable, keyed)
    total = 0
    overflows = []
    for place in entries:
        size = data[place]
        if size > 0x7F:
            size, _ = varint(data, place)
        if size > most:
            _, begin = varint(data, place)
            if not keyed:  # the rowid stands before the record
                _, begin = varint(data, begin)
            here = stored_here(size, usable, keyed)
            overflows.append((_number(data, begin + here), size - here))
            size = here
        total += size
    return total, overflows


def _most_stored(usable: int, keyed: bool) -> int:
    """Return how many bytes of a record a page holds at most; a longer one has overflow."""
    return (usable - 12) * 64 // 255 - 23 if keyed else usable - 35


def stored_here(size: int, usable: int, keyed: bool) -> int:
    """Return how many bytes of a record of this size stand in its cell; the others are its overflow."""
    most = _most_stored(usable, keyed)
    if size <= most:
        return size
    least = (usable - 12) * 32 // 255 - 23
    here = least + (size - least) % (usable - 4)
    return here if here <= most else least


def _overflow(file: PageFile, first: int, length: int) -> Iterator[Page]:
    room = file.usable - 4
    number, left = first, length
    while left > 0:
        data = file.take(number)
        stored = min(left, room)
        yield Page(number, OVERFLOW, 0, stored, room - stored, number == first)
        left -= stored
        number = _number(data, 0)
    if number:
        raise DamagedFile(f"the overflow that begins on page {first} goes on after its end")


def _number(data: bytes, place: int) -> int:
    return int(struct.unpack_from(">I", data, place)[0])
