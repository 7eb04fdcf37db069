"""The space that each b-tree (table or index) takes in a database file, from SQLite's table dbstat.

The schema table is left out. Overflow pages are not counted, because no measured row needs such a page.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from sqlstress import sqlite_codes as codes
from sqlstress.errors import EnvironmentFailure, NotInstalled, SqlstressError
from sqlstress.report import Space, TreeSpace
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.sqlite.drivers import explain, load_driver
from sqlstress.targets.sqlite.files import opened, watched

# Each row has a b-tree's name, its table, whether it is an index, and the numbers of its entries, leaf pages,
# internal pages and corrupted pages.
# `keyed` is whether internal pages have entries, too: in an index or a WITHOUT ROWID table. To recognize
# such a table, the query looks for an index (the primary key) in pragma_index_list but not in sqlite_schema.
_TREES = """
WITH tree AS (
    SELECT name, tbl_name, type = 'index' AS is_index, type = 'index' OR EXISTS (
        SELECT name FROM pragma_index_list(item.name) EXCEPT SELECT name FROM sqlite_schema
    ) AS keyed
    FROM sqlite_schema AS item
)
SELECT name, tbl_name, is_index, sum(CASE WHEN keyed OR pagetype = 'leaf' THEN ncell ELSE 0 END),
    sum(pagetype = 'leaf'), sum(pagetype = 'internal'), sum(pagetype = 'corrupted')
FROM tree JOIN dbstat USING (name)
GROUP BY name
ORDER BY name
"""


class DamagedFile(SqlstressError):
    """The database file is inconsistent, or it violates the file format."""

    exit_code = 1


def measure_space(case: Case, path: Path, pulse: Pulse) -> Space:
    """Return the size of a database file and the space of each of its b-trees (tables and indexes).

    Call it while no process uses the database: the WAL is copied into the file first. Raises DamagedFile,
    EnvironmentFailure, or an exception of `pulse`.
    """
    impossible = f"cannot measure the space of {path.name}"
    damaged = f"{path.name} is damaged, so its space is unknown"
    if not path.is_file() or path.stat().st_size == 0:
        raise EnvironmentFailure(f"{impossible}: no such database.")
    # Use only one SQLite library: when a second library closes the file, the locks of the first are dropped.
    # Without a library that has dbstat, `driver` is None and the result has no b-trees.
    driver = next(filter(_has_dbstat, (case.driver, "apsw")), None)
    case = replace(case, driver=driver or case.driver)
    try:
        with opened(case, path) as connection:
            # In journal modes other than WAL the result is 0.
            if connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
                raise EnvironmentFailure(f"{impossible}: another connection reads or writes it.")
            page_size, page_count, free_pages = (
                int(connection.rows(f"PRAGMA {name}")[0][0])
                for name in ("page_size", "page_count", "freelist_count")
            )
            rows = watched(connection, _TREES, pulse) if driver else []
    except SqlstressError:
        raise
    except Exception as error:
        # SQLite's message may quote a name from a damaged schema, and such a name may have line breaks.
        reason = " ".join(explain(case.driver, error).split())
        if codes.is_damage(load_driver(case.driver).result_code(error)):
            raise DamagedFile(f"{damaged}: {reason}.") from error
        raise EnvironmentFailure(f"{impossible}: {reason}.") from error
    trees = []
    for name, table, is_index, *sizes, corrupted in rows:
        if corrupted:
            raise DamagedFile(f"{damaged}: a page of {name} is corrupted.")
        trees.append(TreeSpace(name, table, bool(is_index), *sizes))
    return Space(path.stat().st_size, page_size, page_count, free_pages, tuple(trees))


def _has_dbstat(driver: str) -> bool:
    with suppress(NotInstalled), closing(load_driver(driver).connect(Path(":memory:"), 0)) as connection:
        return ("ENABLE_DBSTAT_VTAB",) in connection.rows("PRAGMA compile_options")
    return False
