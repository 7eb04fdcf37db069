"""How much space a database file takes, and what for: from dbstat, or from a walk of our own."""

from __future__ import annotations

from pathlib import Path

from sqlstress.errors import EnvironmentFailure, SqlstressError, said
from sqlstress.report import Space, TreeSpace
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import call_apart
from sqlstress.targets.sqlite import dbstat, pages
from sqlstress.targets.sqlite.drivers import Connection, codes, load_driver
from sqlstress.targets.sqlite.files import opened
from sqlstress.targets.sqlite.pages import DamagedFile, Tree, tree_space

# A WITHOUT ROWID table is known by the index of its primary key, which lies nowhere: it is the table.
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
    """Return what the pages of a database hold; to be called while nobody uses it.

    What lies in its WAL is put into the file first. `pulse` is called often, and may raise. Raises
    DamagedFile, or EnvironmentFailure.
    """
    if not path.is_file() or path.stat().st_size == 0:
        raise _impossible(path, "there is no database")
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
        tell = _damaged if codes.is_damage(code) else _impossible
        # A damaged schema may have names with line breaks, of which SQLite's message quotes one.
        raise tell(path, f"{name}: {' '.join(said(error).split())}") from error


def _impossible(path: Path, reason: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"the space of {path.name} can't be measured: {reason}.")


def _damaged(path: Path, reason: str) -> DamagedFile:
    return DamagedFile(
        f"{path.name} is damaged, and its space can't be measured: {reason}. "
        "PRAGMA integrity_check says more."
    )


def _measure(case: Case, path: Path, pulse: Pulse) -> Space:
    with opened(case, path) as connection:
        if connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:  # in another mode it has nothing to do
            raise _impossible(path, "another connection reads or writes it")
        page_size = int(connection.rows("PRAGMA page_size")[0][0])
        page_count = int(connection.rows("PRAGMA page_count")[0][0])
        free_pages = int(connection.rows("PRAGMA freelist_count")[0][0])
        trees = trees_of(connection)
        spaces = _from_dbstat(case, connection, trees)
    if spaces is None:
        spaces = call_apart(pulse, pages.walk, path, trees)
    return Space(path.stat().st_size, page_size, page_count, free_pages, spaces)


def trees_of(connection: Connection) -> tuple[Tree, ...]:
    """Return the b-trees of a database, by name."""
    return tuple(
        Tree(name, table, root, bool(is_index), bool(keyed))
        for name, table, root, is_index, keyed in connection.rows(_TREES)
    )


def _from_dbstat(case: Case, connection: Connection, trees: tuple[Tree, ...]) -> tuple[TreeSpace, ...] | None:
    if not dbstat.available(load_driver(case.driver), connection):
        return None
    return tuple(tree_space(tree, dbstat.pages(connection, tree)) for tree in trees)
