"""The pages of a database's b-trees, read without SQLite: what dbstat answers where it is there.

Source: https://www.sqlite.org/fileformat2.html#b_tree_pages
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlstress.report import TreeSpace
from sqlstress.targets.sqlite.pagefile import HEADER, PageFile
from sqlstress.targets.sqlite.pages import INTERNAL, LEAF, OVERFLOW, DamagedFile, Page, Tree, tree_space
from sqlstress.targets.sqlite.records import contradicts_itself, varint

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
