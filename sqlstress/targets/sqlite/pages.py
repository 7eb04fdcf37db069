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

# What is known of a database file's b-trees and of each of their pages, however it was found out.


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


# A database file as pages, read without SQLite: its header, its free list, and which pages are taken.
#
# Never in a process that has a connection to the file: closing it here would drop that one's POSIX
# locks. What lies in a WAL is not seen.
#
# Source: https://www.sqlite.org/fileformat2.html


HEADER = 100
"""Bytes of the file's header, on page 1 before that page's own."""
_MAGIC = b"SQLite format 3\0"
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
        if len(header) < HEADER or not header.startswith(_MAGIC):
            raise DamagedFile("it has no header of SQLite's")
        size, reserved = struct.unpack_from(">H2xB", header, 16)
        self.page_size = 1 << 16 if size == 1 else size
        """Bytes of a page."""
        self.usable = self.page_size - reserved
        """Bytes of a page that SQLite uses."""
        if self.page_size < 512 or self.page_size & (self.page_size - 1) or self.usable < _LEAST_USABLE:
            raise DamagedFile(f"its header says {self.page_size} bytes a page, of them {reserved} reserved")
        self.page_count = self._count_pages(header)
        """Pages of the database."""
        self._taken = bytearray(self.page_count + 1)
        self._taken[0] = True  # pages are numbered from 1
        self._set_aside(auto_vacuum=header[52:56] != bytes(4))
        self._read_free_list(*struct.unpack_from(">II", header, 32))

    def _count_pages(self, header: bytes) -> int:
        in_file = self._file.seek(0, os.SEEK_END) // self.page_size
        # An SQLite before 3.7.0 left the count as it was, and did not mark it as valid.
        valid = header[24:28] == header[92:96]
        count = int.from_bytes(header[28:32], "big") if valid else 0
        if count > in_file:
            raise DamagedFile(f"it should have {count} pages and has {in_file}")
        return count or in_file

    def _set_aside(self, auto_vacuum: bool) -> None:
        """Take the page with the lock bytes, and the pointer maps that a file with auto_vacuum has."""
        lock_page = _LOCK_BYTE // self.page_size + 1
        if lock_page <= self.page_count:
            self.claim(lock_page)
        if auto_vacuum:
            for number in range(2, self.page_count + 1, self.usable // _POINTER + 1):
                self.claim(number + 1 if number == lock_page else number)

    def _read_free_list(self, trunk: int, count: int) -> None:
        found = 0
        while trunk:
            data = self.take(trunk)
            number, (trunk, leaves) = trunk, struct.unpack_from(">II", data)
            if leaves > self.usable // 4 - 2:
                raise DamagedFile(f"page {number} of its free list says that it leads to {leaves} pages")
            for leaf in struct.unpack_from(f">{leaves}I", data, 8):
                self.claim(leaf)
            found += 1 + leaves
        if found != count:
            raise DamagedFile(f"its free list should have {count} pages and has {found}")

    def claim(self, number: int) -> None:
        """Take a page without reading it."""
        if not 1 <= number <= self.page_count:
            raise DamagedFile(f"something leads to page {number}, and there are {self.page_count}")
        if self._taken[number]:
            raise DamagedFile(f"page {number} has two uses")
        self._taken[number] = True

    def take(self, number: int) -> bytes:
        """Take a page and return it."""
        self.claim(number)
        return self.read(number)

    def read(self, number: int) -> bytes:
        """Return a page that was taken."""
        self._file.seek((number - 1) * self.page_size)
        return self._file.read(self.page_size)

    def check_all_taken(self) -> None:
        """Raise when pages are neither used nor free."""
        lost = self._taken.count(False)
        if lost:
            raise DamagedFile(f"{lost} of its {self.page_count} pages are neither used nor free")


# Records: the format in which a b-tree's cell holds a row's columns.
#
# Source: https://www.sqlite.org/fileformat2.html#record_format


_FIXED = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of a column by its type: NULL, integers of six sizes, a float, and the constants 0 and 1."""


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    value = 0
    for at in range(place, place + 8):
        value = value << 7 | data[at] & 0x7F
        if data[at] < 0x80:
            return value, at + 1
    return value << 8 | data[place + 8], place + 9


def contradicts_itself(stored: bytes, size: int) -> bool:
    """Return whether a record's header does not describe as many bytes as it has.

    `stored` is its beginning, and `size` the bytes of all of it.
    """
    try:
        return _described(stored, size) != size
    except IndexError:
        return True


def _described(stored: bytes, size: int) -> int:
    """Return how many bytes a record's header describes, its own included. Raises IndexError."""
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


_KINDS = {(True, 0x02): INTERNAL, (True, 0x0A): LEAF, (False, 0x05): INTERNAL, (False, 0x0D): LEAF}
"""Kinds of pages by whether their b-tree is ordered by keys, and by their first byte."""
_PAGE_HEADER = struct.Struct(">BHHHB")


class _Chain(NamedTuple):
    """The overflow of one entry."""

    first: int
    """Its first page."""
    length: int
    """Bytes in all its pages."""


def walk(path: Path, trees: tuple[Tree, ...]) -> tuple[TreeSpace, ...]:
    """Add up each b-tree of a file, and make sure that together they are all of it.

    Not in a process that has a connection to the file; what lies in a WAL is not seen. Raises
    DamagedFile, OSError.
    """
    with path.open("rb") as file:
        database = PageFile(file)
        found = tuple(tree_space(tree, pages(database, tree)) for tree in trees)
        database.check_all_taken()
        return found


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
        if contradicts_itself(stored, size):
            raise DamagedFile(f"cell {cell} of page {page.number} of {tree.name} holds no record")


def pages(file: PageFile, tree: Tree) -> Iterator[Page]:
    """Yield the pages of a b-tree. Raises DamagedFile."""
    waiting = [tree.root]
    while waiting:
        number = waiting.pop()
        try:
            page, children, chains = _read(file, number, tree)
        except (IndexError, struct.error) as error:
            raise DamagedFile(f"page {number} leads out of itself") from error
        yield page
        waiting += children
        for chain in chains:
            yield from _overflow(file, chain)


def _read(file: PageFile, number: int, tree: Tree) -> tuple[Page, list[int], list[_Chain]]:
    """Return a page, its children, and the overflow of its entries."""
    data = file.take(number)
    start = HEADER if number == 1 else 0
    first_byte, free_block, cells, content, fragments = _PAGE_HEADER.unpack_from(data, start)
    kind = _KINDS.get((tree.keyed, first_byte))
    if kind is None:
        raise DamagedFile(f"page {number} is no page of {tree.name}")
    places_at = start + (12 if kind == INTERNAL else 8)
    places_end = places_at + 2 * cells
    places = struct.unpack_from(f">{cells}H", data, places_at)
    children, entries = list[int](), places
    if kind == INTERNAL:
        children = [_number(data, place) for place in (*places, start + 8)]
        entries = tuple(place + 4 for place in places) if tree.keyed else ()
    payload, chains = _payload(data, entries, file.usable, tree.keyed)
    content = content or 1 << 16
    unused = content - places_end + fragments + _free_blocks(data, number, free_block)
    ordered = places_end <= content <= min(places, default=content)
    if not ordered or places_end + payload + unused > file.usable:
        raise DamagedFile(f"page {number} holds more than a page can")
    return Page(number, kind, cells, payload, unused, False), children, chains


def _payload(data: bytes, entries: Sequence[int], usable: int, keyed: bool) -> tuple[int, list[_Chain]]:
    """Return the bytes of records on a page, and the overflow of its entries."""
    most = _most_stored(usable, keyed)
    total = 0
    chains = []
    for place in entries:
        size = data[place]
        if size > 0x7F:
            size, _ = varint(data, place)
        if size > most:
            _, begin = varint(data, place)
            if not keyed:  # the rowid stands before the record
                _, begin = varint(data, begin)
            here = stored_here(size, usable, keyed)
            chains.append(_Chain(_number(data, begin + here), size - here))
            size = here
        total += size
    return total, chains


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


def _overflow(file: PageFile, chain: _Chain) -> Iterator[Page]:
    room = file.usable - 4
    number, left = chain.first, chain.length
    while left > 0:
        data = file.take(number)
        stored = min(left, room)
        yield Page(number, OVERFLOW, 0, stored, room - stored, number == chain.first)
        left -= stored
        number = _number(data, 0)
    if number:
        raise DamagedFile(f"the overflow that begins on page {chain.first} goes on after its end")


def _free_blocks(data: bytes, number: int, place: int) -> int:
    """Return the bytes in a page's chain of free blocks."""
    total = 0
    while place:
        following, size = struct.unpack_from(">HH", data, place)
        if size < 4 or 0 < following < place + size:
            raise DamagedFile(f"page {number} has free blocks that overlap")
        total += size
        place = following
    return total


def _number(data: bytes, place: int) -> int:
    """Return the number of a page."""
    return int(struct.unpack_from(">I", data, place)[0])
