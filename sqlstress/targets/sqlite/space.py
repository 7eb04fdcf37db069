"""The space that each b-tree takes in a database file, from SQLite's table dbstat.

The schema table is left out, and so are overflow pages: no entry of the measured tables has overflow pages.
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

# The sum of ncell is the number of entries of a b-tree. In an index or WITHOUT ROWID table (`keyed`), all
# pages have entries. In other tables only leaves do, because internal pages only separate leaves. The query
# recognises a WITHOUT ROWID table by an index, of its primary key, that sqlite_schema does not have.
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
    """Return the space that each b-tree of a database takes, while no process uses the database.

    The WAL is copied into the file first. No b-tree is returned if neither the driver's SQLite nor that of
    apsw has dbstat. Raises DamagedFile, EnvironmentFailure, or an exception of `pulse`.
    """
    impossible = f"cannot measure the space of {path.name}"
    damaged = f"{path.name} is damaged, so its space is unknown"
    if not path.is_file() or path.stat().st_size == 0:
        raise EnvironmentFailure(f"{impossible}: no such database.")
    # One library does all, since closing the file in a second one would drop the POSIX locks of the first.
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
    """Return whether the SQLite of a driver has the table dbstat, and the driver is installed."""
    with suppress(NotInstalled), closing(load_driver(driver).connect(Path(":memory:"), 0)) as connection:
        return ("ENABLE_DBSTAT_VTAB",) in connection.rows("PRAGMA compile_options")
    return False
