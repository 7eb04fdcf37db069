"""Changes of single bytes of a database file that carry meaning, by the part of the file.

Free pages, and unused bytes of a page, may have any content. So may a further byte: a record's type of the
column that is the rowid, since SQLite reads the rowid in its place.

Source: https://www.sqlite.org/fileformat2.html
"""

import io
import sqlite3
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from random import Random
from typing import Any, NamedTuple

from sqlstress.targets.sqlite.files import opened
from tests.damage import pages
from tests.damage.pages import HEADER, INTERNAL, OVERFLOW, BtreePage, PageFile, Tree, varint
from tests.damage.trial import Change, Mutation, NothingToChange, Trial, Words

ROW, ENTRY, POINTER, PAGE_HEADER, TRUNK = "row", "index entry", "pointer", "page header", "free-list trunk"
"""Parts of a file: a cell of a table or of an index, a pointer to a cell or to a page, …"""


class Site(NamedTuple):
    """A byte."""

    part: str
    """Part of the file to which the byte belongs."""
    page: int
    """Number of its page."""
    offset: int
    """Offset in the file."""
    tree: Tree | None
    """B-tree of its page; None in the free list."""
    other: int
    """Page that a complaint may name instead.

    The page of the cell whose overflow contains the byte, or the child whose last rowid the byte repeats.
    """


def flip(part: str, words: Words) -> Mutation:
    """Return a mutation that flips bits of a random byte in such a part of a page."""

    def mutate(trial: Trial, random: Random) -> Change:
        bucket = random.randrange(trial.case.buckets)
        path, found = trial.paths[bucket], sites_of(trial, bucket)
        by_page: dict[int, list[Site]] = {}
        for site in found:
            if site.part == part:
                by_page.setdefault(site.page, []).append(site)
        if not by_page:
            raise NothingToChange
        # Choose a page first; otherwise the few pages of small objects would never be chosen.
        site = random.choice(by_page[random.choice(sorted(by_page))])
        before, image = _readable(trial, bucket), bytearray(trial.images[path])
        image[site.offset] ^= random.randrange(1, 256)
        path.write_bytes(image)
        was, now = trial.images[path][site.offset], image[site.offset]
        names = ["freelist"]
        if site.tree:
            # integrity_check names the index for a row that is missing in it.
            others = {
                site_in_index.tree
                for site_in_index in found
                if site_in_index.tree and site_in_index.tree.is_index
            }
            names = [f"page {site.page}", f"page {site.other}"]
            names += sorted(tree.name for tree in others if tree.table == site.tree.table)
            names += ["schema"] * (site.tree.name == "sqlite_schema")
        after = _readable(trial, bucket)
        for table in before.keys() & after.keys():
            differing = (before[table] - after[table]) + (after[table] - before[table])
            if len(differing) < 20:
                names += [word for row in differing for word in words(trial, table, row)]
        return Change(f"byte {site.offset} (page {site.page}) from {was:#04x} to {now:#04x}", (tuple(names),))

    return mutate


def _readable(trial: Trial, bucket: int) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return all rows of a file that can be read, by their tables."""
    found: dict[str, Counter[tuple[Any, ...]]] = {}
    with closing(sqlite3.connect(trial.paths[bucket])) as connection:
        connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            for (name,) in names:
                found[name] = Counter(connection.execute(f'SELECT * FROM "{name}" NOT INDEXED'))
        except (sqlite3.Error, UnicodeDecodeError):
            pass  # unreadable rows name nothing
    return found


def sites_of(trial: Trial, bucket: int) -> list[Site]:
    """Return the bytes of a file, as the workers left it, that carry meaning."""
    if bucket in trial.sites:
        return trial.sites[bucket]
    with opened(trial.case, trial.paths[bucket]) as connection:
        trees = pages.trees_of(connection)

    def is_numbered(tree: Tree) -> bool:
        """Return whether a table's first column is its rowid."""
        columns = trial.rows(f"PRAGMA table_info('{tree.name}')", bucket=bucket)
        first_is_integer_key = bool(columns) and columns[0][2] == "INTEGER" and columns[0][5] == 1
        return first_is_integer_key and not tree.keyed and sum(column[5] > 0 for column in columns) == 1

    numbered = {tree.name for tree in trees if is_numbered(tree)}
    trial.sites[bucket] = [*sites(trial.images[trial.paths[bucket]], trees, numbered)]
    return trial.sites[bucket]


def sites(image: bytes, trees: Sequence[Tree], numbered: Collection[str]) -> Iterator[Site]:
    """Yield every byte that carries meaning; `numbered` names the tables whose first column is the rowid."""
    file = PageFile(io.BytesIO(image))
    for tree in trees:
        holder = tree.root
        for page in pages.walk(file, tree):
            if page.kind != OVERFLOW:
                holder = page.number  # a cell's overflow comes after its page
            for part, start, stop, other in _parts(image, file, tree, page, tree.name in numbered):
                for offset in range(start, stop):
                    yield Site(part, page.number, offset, tree, other or holder)
    (trunk,) = struct.unpack_from(">I", image, 32)
    while trunk:
        start = (trunk - 1) * file.page_size
        following, leaves = struct.unpack_from(">II", image, start)
        for offset in range(start, start + 8 + 4 * leaves):
            yield Site(TRUNK, trunk, offset, None, trunk)
        trunk = following


Part = tuple[str, int, int, int]
"""Part, its begin and end in the file, and another page that is concerned, or 0."""


def _parts(image: bytes, file: PageFile, tree: Tree, page: BtreePage, numbered: bool) -> Iterator[Part]:
    base, content = (page.number - 1) * file.page_size, ENTRY if tree.is_index else ROW
    if page.kind == OVERFLOW:
        yield POINTER, base, base + 4, 0
        yield content, base + 4, base + 4 + page.payload, 0
        return
    start = base + (HEADER if page.number == 1 else 0)
    places_at = start + (12 if page.kind == INTERNAL else 8)
    yield PAGE_HEADER, start, places_at, 0
    yield POINTER, places_at, places_at + 2 * page.cells, 0
    for (place,) in struct.iter_unpack(">H", image[places_at : places_at + 2 * page.cells]):
        at, child = base + place, 0
        if page.kind == INTERNAL:
            yield POINTER, at, at + 4, 0
            (child,) = struct.unpack_from(">I", image, at)
            at += 4
        if page.kind == INTERNAL and not tree.keyed:  # a divider has only a rowid
            yield content, at, varint(image, at)[1], child
        else:
            yield from _cell(image, file.usable, tree, content, at, numbered)


def _cell(image: bytes, usable: int, tree: Tree, content: str, at: int, numbered: bool) -> Iterator[Part]:
    size, payload = varint(image, at)
    if not tree.keyed:
        _, payload = varint(image, payload)
    here = pages.local_bytes(size, usable, tree.keyed)
    end = payload + here
    if numbered:  # the first column's type is the first byte after the header's length
        yield content, at, payload + 1, 0
        yield content, payload + 2, end, 0
    else:
        yield content, at, end, 0
    if here < size:
        yield POINTER, end, end + 4, 0
