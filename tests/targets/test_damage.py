"""Our own walk over damaged files: it reports the damage, and it ends."""

from __future__ import annotations

import struct
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.errors import SqlstressError
from sqlstress.report import TreeSpace
from sqlstress.report.case import Case
from sqlstress.targets.sqlite import pages as btree
from sqlstress.targets.sqlite.pages import DamagedFile, Tree
from sqlstress.targets.sqlite.space import measure_space
from tests.drawing import examples
from tests.targets.both_ways import trees_in
from tests.targets.databases import FILL, TABLES, create

PAGE = 512
"""Bytes of a page in the file that is damaged."""
FREE_COUNT = 36
INTERNAL, LEAF = 0x05, 0x0D
"""First byte of a page of a rowid table."""


@cache
def sound() -> tuple[bytes, tuple[Tree, ...]]:
    """Return a database with all kinds of pages (overflow and free pages too), and its b-trees."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sound.db"
        create(
            path,
            *(TABLES["with an index"], FILL.format(rows=120, size=9)),
            *("DELETE FROM t WHERE a % 3 = 1", "DELETE FROM t WHERE a > 110"),
            pragmas=[f"page_size={PAGE}"],
        )
        return path.read_bytes(), trees_in(path)


class Patient:
    """A database to be damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        content, self.trees = sound()
        self.data = bytearray(content)

    def put(self, place: int, form: str, *values: int) -> None:
        struct.pack_into(f">{form}", self.data, place, *values)

    def get(self, place: int, form: str) -> int:
        return int(struct.unpack_from(f">{form}", self.data, place)[0])

    def page_of_kind(self, kind: int) -> int:
        """Return the number of a page of this kind in `t`, with several entries."""
        waiting = [self.trees[-1].root]
        while waiting:
            page = waiting.pop(0)
            start, cells = offset_of(page), self.get(offset_of(page) + 3, "H")
            if self.data[start] == kind and cells > 1:
                return page
            if self.data[start] == INTERNAL:
                waiting += (
                    self.get(start + self.get(start + 12 + 2 * cell, "H"), "I") for cell in range(cells)
                )
        raise LookupError

    def walk(self) -> tuple[TreeSpace, ...]:
        self.path.write_bytes(self.data)
        return btree.measure_trees(self.path, self.trees)

    def complaint(self) -> str:
        with pytest.raises(DamagedFile) as refused:
            self.walk()
        return str(refused.value)


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path / "damaged.db")


def offset_of(number: int) -> int:
    """Return the offset of a page. Page 1, which begins with the file header, is never damaged here."""
    assert number > 1
    return (number - 1) * PAGE


def test_sound_database_is_walked_without_complaint(patient: Patient) -> None:
    assert [tree.name for tree in patient.walk()] == ["sqlite_autoindex_t_1", "t"]
    assert patient.get(FREE_COUNT, "I") > 10


@pytest.mark.parametrize("length", [0, 50, 99, None])
def test_file_without_a_whole_sqlite_header_is_damaged(patient: Patient, length: int | None) -> None:
    if length is None:
        patient.data[:6] = b"SQLate"
    else:
        del patient.data[length:]
    assert patient.complaint() == "it has no SQLite header"


def test_page_of_another_kind_of_b_tree_is_damage(patient: Patient) -> None:
    leaf = patient.page_of_kind(LEAF)
    patient.put(offset_of(leaf), "B", 0x0A)
    assert patient.complaint() == f"page {leaf} is not a page of t"


def test_child_beyond_the_end_is_damage(patient: Patient) -> None:
    patient.put(offset_of(patient.page_of_kind(INTERNAL)) + 8, "I", 1_000_000)
    assert patient.complaint() == "page 1000000 does not exist"


@pytest.mark.parametrize("child", ["itself", "the root", "its first child"])
def test_child_page_with_two_uses_is_damage(patient: Patient, child: str) -> None:
    page = patient.page_of_kind(INTERNAL)
    first = patient.get(offset_of(page) + patient.get(offset_of(page) + 12, "H"), "I")
    number = {"itself": page, "the root": patient.trees[-1].root, "its first child": first}[child]
    patient.put(offset_of(page) + 8, "I", number)
    assert patient.complaint() == f"page {number} has two uses"


def damages() -> st.SearchStrategy[list[tuple[int, bytes]]]:
    """Return a strategy of (offset, bytes): anywhere, or at the beginning of a page, where its header is."""
    size = len(sound()[0])
    anywhere = st.integers(0, size - 1)
    headers = st.builds(
        lambda page, place: page * PAGE + place, st.integers(0, size // PAGE - 1), st.integers(0, 40)
    )
    bad = st.binary(min_size=1, max_size=4) | st.sampled_from(
        (b"\0", b"\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff")
    )
    return st.lists(st.tuples(anywhere | headers, bad), min_size=1, max_size=6)


def damaged(damage: list[tuple[int, bytes]], length: int | None) -> bytes:
    data = bytearray(sound()[0])
    for place, content in damage:
        data[place : place + len(content)] = content
    return bytes(data[:length])


@settings(max_examples=examples(3))
@given(damages(), st.none() | st.integers(0, len(sound()[0])))
def test_walk_ends_on_any_damage(damage: list[tuple[int, bytes]], length: int | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.db"
        path.write_bytes(damaged(damage, length))
        try:
            trees = btree.measure_trees(path, sound()[1])
        except DamagedFile as error:
            assert "\n" not in str(error)
        else:
            assert sum(tree.pages for tree in trees) <= path.stat().st_size // PAGE


@given(damages(), st.none() | st.integers(1, len(sound()[0])))
def test_measurement_fails_in_one_line_on_any_damage(
    damage: list[tuple[int, bytes]], length: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.db"
        path.write_bytes(damaged(damage, length))
        try:
            measure_space(Case(), path, lambda: None)
        except SqlstressError as error:
            assert "\n" not in str(error)
