"""The space that each b-tree takes in a database file, from SQLite's table dbstat or its pages.

Linux distributions compile dbstat into SQLite. Python's installers for Windows and macOS do not.

Source: https://www.sqlite.org/dbstat.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlstress import sqlite_codes as codes
from sqlstress.errors import EnvironmentFailure, SqlstressError, error_message
from sqlstress.report import Space
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import call_in_subprocess
from sqlstress.targets.sqlite import pages
from sqlstress.targets.sqlite.drivers import Connection, Driver, load_driver
from sqlstress.targets.sqlite.files import opened
from sqlstress.targets.sqlite.pages import INTERNAL, LEAF, OVERFLOW, BtreePage, DamagedFile, Tree, tree_space

DBSTAT = "dbstat"
_LARGEST_PAGE = 1 << 16
# sqlite_schema does not list the index of a WITHOUT ROWID table's primary key: the table is this index.
_TREES = """
SELECT 'sqlite_schema' AS name, 'sqlite_schema', 1, 0, 0
UNION ALL
SELECT name, tbl_name, rootpage, type = 'index', type = 'index' OR EXISTS (
    SELECT name FROM pragma_index_list(tree.name) EXCEPT SELECT name FROM sqlite_schema
)
FROM sqlite_schema AS tree
WHERE rootpage > 0
ORDER BY name
"""


def measure_space(case: Case, path: Path, pulse: Pulse) -> Space:
    """Return the space that each b-tree of a database takes, while no process uses the database.

    The WAL is copied into the file first. Raises DamagedFile, EnvironmentFailure, or an exception of `pulse`.
    """
    if not path.is_file() or path.stat().st_size == 0:
        raise _impossible(path, "no such database")
    try:
        return _measure(case, path, pulse)
    except DamagedFile as error:
        raise _damaged(path, str(error)) from error
    except OSError as error:
        raise _impossible(path, error.strerror or str(error)) from error
    except SqlstressError:
        raise
    except Exception as error:
        code = load_driver(case.driver).result_code(error)
        name = type(error).__name__ if code is None else codes.name(code)
        failure = _damaged if codes.is_damage(code) else _impossible
        # SQLite's message may quote a name from a damaged schema, and such a name may have line breaks.
        raise failure(path, f"{name}: {' '.join(error_message(error).split())}") from error


def _impossible(path: Path, reason: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"cannot measure the space of {path.name}: {reason}.")


def _damaged(path: Path, reason: str) -> DamagedFile:
    return DamagedFile(
        f"{path.name} is damaged, and its space can't be measured: {reason}. "
        "PRAGMA integrity_check says more."
    )


def _measure(case: Case, path: Path, pulse: Pulse) -> Space:
    spaces = None
    with opened(case, path) as connection:
        # In journal modes other than WAL the result is 0.
        if connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            raise _impossible(path, "another connection reads or writes it")
        page_size, page_count, free_pages = (
            int(connection.rows(f"PRAGMA {name}")[0][0])
            for name in ("page_size", "page_count", "freelist_count")
        )
        trees = trees_of(connection)
        if has_dbstat(load_driver(case.driver), connection):
            spaces = tuple(tree_space(tree, dbstat_pages(connection, tree)) for tree in trees)
    if spaces is None:
        spaces = call_in_subprocess(pulse, pages.measure_trees, path, trees)
    return Space(path.stat().st_size, page_size, page_count, free_pages, spaces)


def trees_of(connection: Connection) -> tuple[Tree, ...]:
    return tuple(
        Tree(name, table, root, bool(is_index), bool(keyed))
        for name, table, root, is_index, keyed in connection.rows(_TREES)
    )


def has_dbstat(driver: Driver, connection: Connection) -> bool:
    try:
        connection.rows(f"SELECT 1 FROM {DBSTAT} LIMIT 0")
    except Exception as error:
        if driver.result_code(error) != codes.ERROR:
            raise
        return False
    return True


def dbstat_pages(connection: Connection, tree: Tree) -> Iterator[BtreePage]:
    """Yield the pages of a b-tree, from dbstat. Raises DamagedFile."""
    rows = connection.rows(
        # The path of an overflow page ends in its number in the chain of pages, from 0.
        f"SELECT pageno, pagetype, ncell, payload, unused, path LIKE '%+000000' FROM {DBSTAT} WHERE name = ?",
        (tree.name,),
    )
    for number, kind, cells, payload, unused, begins_overflow in rows:
        if kind not in (LEAF, INTERNAL, OVERFLOW):
            raise DamagedFile(f"page {number} is not a page of {tree.name}")
        # In an empty page of 65,536 bytes the offset of the content is stored as 0. dbstat takes the 0 as the
        # offset, so its number of unused bytes is negative.
        true_unused = unused if unused >= 0 else unused + _LARGEST_PAGE
        yield BtreePage(number, kind, cells, payload, true_unused, bool(begins_overflow))
