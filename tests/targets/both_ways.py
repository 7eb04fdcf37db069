"""The pages of a database, from dbstat and from our own reading of the file."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest

from sqlstress.errors import UsageError
from sqlstress.targets.sqlite import pages as btree
from sqlstress.targets.sqlite.drivers import DRIVERS, load_driver
from sqlstress.targets.sqlite.pages import OVERFLOW, BtreePage, PageFile, Tree
from sqlstress.targets.sqlite.space import dbstat_pages, has_dbstat, trees_of

Pages = dict[str, list[BtreePage]]


def a_driver_with_dbstat() -> str | None:
    """Return the name of a driver whose library has dbstat, or None if there is none."""
    for name in DRIVERS:
        with (
            suppress(UsageError),
            closing(load_driver(name).connect(Path(":memory:"), 0)) as connection,
        ):
            if has_dbstat(load_driver(name), connection):
                return name
    return None


DRIVER = a_driver_with_dbstat()
needs_dbstat = pytest.mark.skipif(DRIVER is None, reason="no SQLite here has dbstat")


def trees_in(path: Path) -> tuple[Tree, ...]:
    """Return the b-trees of a database."""
    with closing(load_driver("sqlite3").connect(path, 0)) as connection:
        return trees_of(connection)


def dbstat_pages_of(path: Path) -> Pages:
    """Return the pages of each b-tree from dbstat, by number."""
    assert DRIVER is not None
    with closing(load_driver(DRIVER).connect(path, 0)) as connection:
        return {tree.name: sorted(dbstat_pages(connection, tree)) for tree in trees_of(connection)}


def read(path: Path) -> Pages:
    """Return the pages of each b-tree from the file, without a connection in this process."""
    trees = trees_in(path)
    with path.open("rb") as file:
        database = PageFile(file)
        return {tree.name: sorted(btree.pages(database, tree)) for tree in trees}


def agreed(path: Path) -> Pages:
    """Return the pages; fail unless dbstat and the file agree."""
    pages = read(path)
    assert pages == dbstat_pages_of(path)
    return pages


def overflow_pages(pages: Pages) -> int:
    """Count the overflow pages of all b-trees."""
    return sum(page.kind == OVERFLOW for tree_pages in pages.values() for page in tree_pages)


def numbers(pages: Pages) -> set[int]:
    """Return the numbers of the pages of all b-trees."""
    return {page.number for tree_pages in pages.values() for page in tree_pages}
