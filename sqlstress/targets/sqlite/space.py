"""The space that each b-tree takes in a database file.

The schema table is left out, and so are overflow pages: no entry of the measured tables has overflow pages.
"""

from __future__ import annotations

from pathlib import Path

from sqlstress import sqlite_codes as codes
from sqlstress.errors import EnvironmentFailure, SqlstressError, error_message
from sqlstress.report import Space
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import call_in_subprocess
from sqlstress.targets.sqlite.drivers import Connection, load_driver
from sqlstress.targets.sqlite.files import opened
from sqlstress.targets.sqlite.pages import DamagedFile, Tree, measure_trees

# sqlite_schema does not list the index of a WITHOUT ROWID table's primary key: the table is this index.
_TREES = """
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
    with opened(case, path) as connection:
        # In journal modes other than WAL the result is 0.
        if connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            raise _impossible(path, "another connection reads or writes it")
        page_size, page_count, free_pages = (
            int(connection.rows(f"PRAGMA {name}")[0][0])
            for name in ("page_size", "page_count", "freelist_count")
        )
        trees = trees_of(connection)
    spaces = call_in_subprocess(pulse, measure_trees, path, trees)
    return Space(path.stat().st_size, page_size, page_count, free_pages, spaces)


def trees_of(connection: Connection) -> tuple[Tree, ...]:
    """Return the b-trees of a database, except for that of the schema table."""
    return tuple(
        Tree(name, table, root, bool(is_index), bool(keyed))
        for name, table, root, is_index, keyed in connection.rows(_TREES)
    )
