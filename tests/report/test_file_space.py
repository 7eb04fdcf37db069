"""Formulas for the space of a file."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.report import Space, TreeSpace
from sqlstress.report.jsonable import from_plain, to_plain
from tests.strategies import spaces, tree_spaces

PICKS = TreeSpace("picks", "picks", False, 1000, 39, 1)
BY_USER = TreeSpace("by_user", "picks", True, 1000, 7, 2)
BY_WATCH = TreeSpace("by_watch", "picks", True, 1000, 8, 2)
USERS = TreeSpace("users", "users", False, 0, 1, 0)
SPACE = Space(80 * 4096, 4096, 80, 20, (BY_USER, BY_WATCH, PICKS, USERS))


def test_portions_equal_sections_of_sqlite3_analyzer() -> None:
    assert SPACE.table_with_indices("picks").trees == (BY_USER, BY_WATCH, PICKS)
    assert SPACE.table_alone("picks").trees == (PICKS,)
    assert SPACE.indices_of("picks").trees == (BY_USER, BY_WATCH)
    assert SPACE.indices_of("users").trees == ()
    assert SPACE.table_alone("picks").share == 40 / 80
    assert SPACE.indices_of("picks").share == 19 / 80
    assert SPACE.indices_of("users").share == 0
    assert SPACE.bytes_per_row("picks") == (40 + 9 + 10) * 4096 / 1000
    assert SPACE.bytes_per_row("users") is None


@pytest.mark.parametrize("name", ["pick", "by_user"])
def test_unknown_table_has_no_figures(name: str) -> None:
    for part in (SPACE.table_alone, SPACE.table_with_indices, SPACE.indices_of, SPACE.bytes_per_row):
        with pytest.raises(KeyError, match=f"no table {name}"):
            part(name)


def test_fan_out_is_rounded_down_and_excludes_roots_of_tables() -> None:
    assert SPACE.table_alone("picks").fan_out == (40 - 1) // 1
    assert SPACE.indices_of("picks").fan_out == (9 + 10) // 4
    assert SPACE.table_with_indices("picks").fan_out == (40 + 9 + 10 - 1) // 5
    assert SPACE.table_alone("users").fan_out is None
    assert SPACE.indices_of("users").fan_out is None


@given(st.lists(tree_spaces, min_size=1, max_size=5))
def test_table_and_its_indices_add_up(drawn_trees: list[TreeSpace]) -> None:
    trees = [
        replace(tree, name=f"t{number}", table="t0", is_index=number > 0)
        for number, tree in enumerate(drawn_trees)
    ]
    space = Space(4096, 4096, 1, 0, tuple(trees))
    table, indices, both = space.table_alone("t0"), space.indices_of("t0"), space.table_with_indices("t0")
    assert table.storage_bytes + indices.storage_bytes == both.storage_bytes
    for figure in ("pages", "leaf_pages", "internal_pages", "entries"):
        assert table.total(figure) + indices.total(figure) == both.total(figure)


@given(spaces)
def test_space_is_equal_after_saving_and_reading(space: Space) -> None:
    assert from_plain(Space, to_plain(space)) == space
