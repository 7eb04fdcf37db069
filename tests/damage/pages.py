"""Every page of the b-trees of a sound database file, with the pages on which long entries continue."""

import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from sqlstress.targets.sqlite.drivers import Connection

HEADER = 100
"""Size of the file header, at the beginning of page 1, in bytes."""
LEAF, INTERNAL, OVERFLOW = "leaf", "internal", "overflow"
_KINDS = {0x02: INTERNAL, 0x05: INTERNAL, 0x0A: LEAF, 0x0D: LEAF}


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
    """A page of a b-tree."""

    number: int
    kind: str
    """INTERNAL, LEAF or OVERFLOW."""
    cells: int
    payload: int
    """Size of the part of a record on an overflow page, in bytes; 0 on other pages."""


class PageFile:
    """Pages of a database file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        header = file.read(HEADER)
        if len(header) < HEADER:
            raise ValueError("the file has no SQLite header")
        size, reserved = struct.unpack_from(">H2xB", header, 16)
        self.page_size = 1 << 16 if size == 1 else size
        """Size of a page, in bytes."""
        self.usable = self.page_size - reserved
        """Size of the part of each page that SQLite uses, in bytes."""

    def take(self, number: int) -> bytes:
        """Return the content of a page."""
        self._file.seek((number - 1) * self.page_size)
        return self._file.read(self.page_size)


# The index of a WITHOUT ROWID table's primary key is the table itself, so sqlite_schema lacks it.
_TREES = """
SELECT name, tbl_name, rootpage, type = 'index', type = 'index' OR EXISTS (
    SELECT name FROM pragma_index_list(tree.name) EXCEPT SELECT name FROM sqlite_schema
)
FROM sqlite_schema AS tree WHERE rootpage > 0 ORDER BY name
"""


def trees_of(connection: Connection) -> tuple[Tree, ...]:
    """Return all b-trees of a database, with the schema's."""
    trees = [Tree("sqlite_schema", "sqlite_schema", 1, False, False)]
    for name, table, root, is_index, is_keyed in connection.rows(_TREES):
        trees.append(Tree(name, table, root, bool(is_index), bool(is_keyed)))
    return tuple(trees)


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the variable-length integer at an offset, and the offset after the integer."""
    value = 0
    for at in range(place, place + 8):
        value = value << 7 | data[at] & 0x7F
        if data[at] < 0x80:
            return value, at + 1
    return value << 8 | data[place + 8], place + 9


def walk(file: PageFile, tree: Tree) -> Iterator[BtreePage]:
    """Yield the pages of a b-tree. The overflow pages of a page's entries follow the page."""
    waiting = [tree.root]
    while waiting:
        number = waiting.pop()
        data = file.take(number)
        start = HEADER if number == 1 else 0
        kind, cells = _KINDS[data[start]], struct.unpack_from(">H", data, start + 3)[0]
        offsets = struct.unpack_from(f">{cells}H", data, start + (12 if kind == INTERNAL else 8))
        yield BtreePage(number, kind, cells, 0)
        entries: Sequence[int] = offsets
        if kind == INTERNAL:
            waiting += (_number(data, offset) for offset in (*offsets, start + 8))
            entries = [offset + 4 for offset in offsets] if tree.keyed else []
        for entry in entries:
            yield from _overflow(file, tree, data, entry)


def _overflow(file: PageFile, tree: Tree, data: bytes, entry: int) -> Iterator[BtreePage]:
    """Yield the overflow pages of the entry at the offset `entry`."""
    size, begin = varint(data, entry)
    if not tree.keyed:  # The rowid comes before the record.
        _, begin = varint(data, begin)
    local = local_bytes(size, file.usable, tree.keyed)
    left, number = size - local, _number(data, begin + local) if local < size else 0
    while left > 0:
        stored = min(left, file.usable - 4)
        yield BtreePage(number, OVERFLOW, 0, stored)
        left -= stored
        number = _number(file.take(number), 0)


def local_bytes(size: int, usable: int, keyed: bool) -> int:
    """Return the number of bytes that a record of `size` bytes has in its cell.

    Its other bytes are on overflow pages.
    """
    max_local = (usable - 12) * 64 // 255 - 23 if keyed else usable - 35
    if size <= max_local:
        return size
    min_local = (usable - 12) * 32 // 255 - 23
    local = min_local + (size - min_local) % (usable - 4)
    return local if local <= max_local else min_local


def _number(data: bytes, place: int) -> int:
    return int(struct.unpack_from(">I", data, place)[0])
