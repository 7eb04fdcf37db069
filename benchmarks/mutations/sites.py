"""Where the bytes of a database file are that carry meaning, by what they are part of.

Free pages, and bytes of a page that hold nothing, may be anything. So may one more: what a record says of
the column that stands for the rowid, since the rowid is read in its place.

Source: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from sqlstress.targets.sqlite import pages
from sqlstress.targets.sqlite.pages import HEADER, INTERNAL, OVERFLOW, Page, PageFile, Tree, varint

ROW, ENTRY, POINTER, PAGE_HEADER, TRUNK = "row", "index entry", "pointer", "page header", "free-list trunk"
"""What a byte is part of: a cell of a table or of an index, a pointer to a cell or to a page, …"""


class Site(NamedTuple):
    """A byte."""

    part: str
    """What it is part of."""
    page: int
    """The number of its page."""
    offset: int
    """Where it is in the file."""
    tree: Tree | None
    """The b-tree of its page; None in the free list."""
    other: int
    """The page that a complaint may name instead.

    That of the cell whose overflow it is in, or the child whose last rowid it repeats.
    """


def sites(image: bytes, trees: Sequence[Tree], numbered: Collection[str]) -> Iterator[Site]:
    """Yield every byte that carries meaning; `numbered` names the tables whose first column is the rowid."""
    file = PageFile(io.BytesIO(image))
    for tree in trees:
        holder = tree.root
        for page in pages.pages(file, tree):
            holder = (
                holder if page.kind == OVERFLOW else page.number
            )  # a cell's overflow comes after its page
            parts = _Parts(image, file, tree, page, tree.name in numbered)
            for part, start, stop, other in parts.overflow() if page.kind == OVERFLOW else parts.cells():
                for offset in range(start, stop):
                    yield Site(part, page.number, offset, tree, other or holder)
    yield from _trunks(image, file.page_size)


def _trunks(image: bytes, page_size: int) -> Iterator[Site]:
    (trunk,) = struct.unpack_from(">I", image, 32)
    while trunk:
        start = (trunk - 1) * page_size
        following, leaves = struct.unpack_from(">II", image, start)
        for offset in range(start, start + 8 + 4 * leaves):
            yield Site(TRUNK, trunk, offset, None, trunk)
        trunk = following


Part = tuple[str, int, int, int]


class _Parts:
    """The parts of one page, as (what, begin, end in the file, another page that is concerned or 0)."""

    def __init__(self, image: bytes, file: PageFile, tree: Tree, page: Page, numbered: bool) -> None:
        self._image, self._usable, self._tree, self._page = image, file.usable, tree, page
        self._base = (page.number - 1) * file.page_size
        self._numbered = numbered
        self._content = ENTRY if tree.is_index else ROW

    def overflow(self) -> Iterator[Part]:
        yield POINTER, self._base, self._base + 4, 0
        yield self._content, self._base + 4, self._base + 4 + self._page.payload, 0

    def cells(self) -> Iterator[Part]:
        start = self._base + (HEADER if self._page.number == 1 else 0)
        places_at = start + (12 if self._page.kind == INTERNAL else 8)
        yield PAGE_HEADER, start, places_at, 0
        yield POINTER, places_at, places_at + 2 * self._page.cells, 0
        for (place,) in struct.iter_unpack(">H", self._image[places_at : places_at + 2 * self._page.cells]):
            yield from self._cell(self._base + place)

    def _cell(self, at: int) -> Iterator[Part]:
        if self._page.kind == INTERNAL:
            yield POINTER, at, at + 4, 0
            at += 4
            if not self._tree.keyed:  # a divider: only a rowid
                (child,) = struct.unpack_from(">I", self._image, at - 4)
                yield self._content, at, varint(self._image, at)[1], child
                return
        size, payload = varint(self._image, at)
        if not self._tree.keyed:
            _, payload = varint(self._image, payload)
        here = pages.stored_here(size, self._usable, self._tree.keyed)
        end = payload + here
        if self._numbered:  # the first column's type is the first byte after the header's length
            yield self._content, at, payload + 1, 0
            yield self._content, payload + 2, end, 0
        else:
            yield self._content, at, end, 0
        if here < size:
            yield POINTER, end, end + 4, 0
