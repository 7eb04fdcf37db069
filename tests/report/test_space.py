"""Tests of the formulas by which the space of a file is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.report import Space, TreeSpace
from sqlstress.report.jsonable import from_plain, to_plain
from tests.strategies import spaces, tree_spaces

PICKS = TreeSpace("picks", "picks", False, 1000, 10, 60_000, 9_000, 24, 1, 15)
BY_USER = TreeSpace("by_user", "picks", True, 1000, 0, 20_000, 4_000, 7, 2, 0)
BY_WATCH = TreeSpace("by_watch", "picks", True, 1000, 0, 20_000, 4_000, 8, 2, 0)
USERS = TreeSpace("users", "users", False, 0, 0, 0, 4_088, 1, 0, 0)
SPACE = Space(80 * 4096, 4096, 80, 20, (BY_USER, BY_WATCH, PICKS, USERS))


def test_portions_are_those_of_the_sections_of_sqlite3_analyzer() -> None:
    assert SPACE.everything().trees == SPACE.trees
    assert SPACE.table_with_indices("picks").trees == (BY_USER, BY_WATCH, PICKS)
    assert SPACE.table_alone("picks").trees == (PICKS,)
    assert SPACE.indices_of("picks").trees == (BY_USER, BY_WATCH)
    assert SPACE.indices_of("users").trees == ()


@pytest.mark.parametrize("name", ["pick", "by_user"])
def test_what_is_no_table_has_no_figures(name: str) -> None:
    for part in (SPACE.table_alone, SPACE.table_with_indices, SPACE.indices_of, SPACE.bytes_per_row):
        with pytest.raises(KeyError, match=f"no table {name}"):
            part(name)


def test_a_share_is_of_the_whole_database_free_pages_included() -> None:
    assert SPACE.table_alone("picks").share == 40 / 80
    assert SPACE.indices_of("picks").share == 19 / 80
    assert SPACE.indices_of("users").share == 0


def test_the_fan_out_is_rounded_down_and_leaves_out_the_roots_of_tables_only() -> None:
    assert SPACE.table_alone("picks").fan_out == (25 - 1) // 1
    assert SPACE.indices_of("picks").fan_out == (9 + 10) // 4
    assert SPACE.table_with_indices("picks").fan_out == (25 + 9 + 10 - 1) // 5
    assert SPACE.everything().fan_out == (25 + 9 + 10 + 1 - 2) // 5


def test_without_internal_pages_there_is_no_fan_out() -> None:
    assert SPACE.table_alone("users").fan_out is None
    assert SPACE.indices_of("users").fan_out is None


def test_what_is_neither_payload_nor_unused_is_metadata() -> None:
    assert SPACE.indices_of("picks").metadata_bytes == 19 * 4096 - 40_000 - 8_000
    # Ten chains over fifteen pages: five of their pages hold a link to the next one.
    assert SPACE.table_alone("picks").metadata_bytes == 40 * 4096 - 60_000 - 9_000 + 4 * 5


def test_a_row_takes_its_part_of_the_table_and_of_its_indices() -> None:
    assert SPACE.bytes_per_row("picks") == (40 + 9 + 10) * 4096 / 1000
    assert SPACE.bytes_per_row("users") is None


def test_averages_are_by_entry() -> None:
    indices = SPACE.indices_of("picks")
    assert indices.per_entry(indices.payload_bytes) == 20.0
    assert SPACE.table_alone("users").per_entry(0) is None


@given(st.lists(tree_spaces, min_size=1, max_size=5))
def test_a_table_and_its_indices_add_up(drawn: list[TreeSpace]) -> None:
    trees = [
        replace(tree, name=f"t{number}", table="t0", is_index=number > 0) for number, tree in enumerate(drawn)
    ]
    space = Space(4096, 4096, 1, 0, tuple(trees))
    table, indices, both = space.table_alone("t0"), space.indices_of("t0"), space.table_with_indices("t0")
    for figure in (
        *("pages", "leaf_pages", "internal_pages", "overflow_pages", "storage_bytes", "metadata_bytes"),
        *("entries", "overflowing_entries", "payload_bytes", "unused_bytes"),
    ):
        assert getattr(table, figure) + getattr(indices, figure) == getattr(both, figure)


@given(spaces)
def test_a_space_survives_being_saved(space: Space) -> None:
    assert from_plain(Space, to_plain(space)) == space
