"""The pages of a database file from SQLite's own virtual table, where the build has it.

Source: https://www.sqlite.org/dbstat.html
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.targets.sqlite.drivers import Connection, Driver, codes
from sqlstress.targets.sqlite.pages import INTERNAL, LEAF, OVERFLOW, DamagedFile, Page, Tree

TABLE = "dbstat"
_KINDS = {LEAF, INTERNAL, OVERFLOW}
_LARGEST_PAGE = 1 << 16


def available(driver: Driver, connection: Connection) -> bool:
    """Say whether the library has dbstat."""
    try:
        connection.rows(f"SELECT 1 FROM {TABLE} LIMIT 0")
    except Exception as error:
        if driver.result_code(error) != codes.ERROR:
            raise
        return False
    return True


def pages(connection: Connection, tree: Tree) -> Iterator[Page]:
    """Yield the pages of a b-tree. Raises DamagedFile."""
    rows = connection.rows(
        # The path of the first page of an entry's overflow ends in its number, 0.
        f"SELECT pageno, pagetype, ncell, payload, unused, path LIKE '%+000000' FROM {TABLE} WHERE name = ?",
        (tree.name,),
    )
    for number, kind, cells, payload, unused, begins_overflow in rows:
        if kind not in _KINDS:
            raise DamagedFile(f"page {number} is no page of {tree.name}")
        # An empty page of 65,536 bytes says that its content begins at 0, and dbstat takes it at its word.
        really_unused = unused if unused >= 0 else unused + _LARGEST_PAGE
        yield Page(number, kind, cells, payload, really_unused, bool(begins_overflow))
