"""The space of a database, from dbstat and from our own reading of the file."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest

from sqlstress.errors import UsageError
from sqlstress.report import TreeSpace
from sqlstress.targets.sqlite.drivers import DRIVERS, load_driver
from sqlstress.targets.sqlite.pages import Tree, measure_trees
from sqlstress.targets.sqlite.space import has_dbstat, tree_in_dbstat, trees_of

Spaces = dict[str, TreeSpace]


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


def from_dbstat(path: Path) -> tuple[TreeSpace, ...]:
    """Return the space of each b-tree from dbstat."""
    assert DRIVER is not None
    with closing(load_driver(DRIVER).connect(path, 0)) as connection:
        return tuple(tree_in_dbstat(connection, tree) for tree in trees_of(connection))


def agreed(path: Path) -> Spaces:
    """Return the space of each b-tree by its name; fail unless dbstat and the file agree."""
    spaces = measure_trees(path, trees_in(path))
    assert spaces == from_dbstat(path)
    return {space.name: space for space in spaces}
