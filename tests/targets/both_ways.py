"""The space of a database, from dbstat and from our own reading of the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sqlstress.report import TreeSpace
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.pages import Tree, measure_trees
from sqlstress.targets.sqlite.space import trees_of

Spaces = dict[str, TreeSpace]


def has_dbstat() -> bool:
    """Return whether the SQLite of the module sqlite3 has the table dbstat."""
    with closing(sqlite3.connect(":memory:")) as connection, suppress(sqlite3.Error):
        connection.execute("SELECT 1 FROM dbstat")
        return True
    return False


needs_dbstat = pytest.mark.skipif(not has_dbstat(), reason="the SQLite here lacks dbstat")


def trees_in(path: Path) -> tuple[Tree, ...]:
    """Return the b-trees of a database."""
    with closing(load_driver("sqlite3").connect(path, 0)) as connection:
        return trees_of(connection)


def from_dbstat(path: Path) -> tuple[TreeSpace, ...]:
    """Return the space of each b-tree from dbstat."""
    query = "SELECT pagetype, count(*), sum(ncell) FROM dbstat WHERE name = ? GROUP BY pagetype"
    spaces = []
    for tree in trees_in(path):
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(query, (tree.name,)).fetchall()
        pages, cells = ({kind: row[number] for kind, *row in rows} for number in (0, 1))
        leaves, internal = pages.get("leaf", 0), pages.get("internal", 0)
        entries = cells.get("leaf", 0) + (cells.get("internal", 0) if tree.keyed else 0)
        spaces.append(TreeSpace(tree.name, tree.table, tree.is_index, entries, leaves, internal))
    return tuple(spaces)


def agreed(path: Path) -> Spaces:
    """Return the space of each b-tree by its name; fail unless dbstat and the file agree."""
    spaces = measure_trees(path, trees_in(path))
    assert spaces == from_dbstat(path)
    return {space.name: space for space in spaces}
