"""The measurement of space in damaged files fails in one line."""

import tempfile
from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import SqlstressError
from sqlstress.report.case import Case
from sqlstress.targets.sqlite.space import measure_space
from tests.targets.databases import FILL, TABLES, create

PAGE = 512
"""Bytes of a page in the file that is damaged."""


@cache
def sound() -> bytes:
    """Return the content of a database with all kinds of pages (overflow and free pages too)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sound.db"
        create(
            path,
            *(TABLES["with an index"], FILL.format(rows=120, size=9)),
            *("DELETE FROM t WHERE a % 3 = 1", "DELETE FROM t WHERE a > 110"),
            pragmas=[f"page_size={PAGE}"],
        )
        return path.read_bytes()


def damages() -> st.SearchStrategy[list[tuple[int, bytes]]]:
    """Return a strategy of (offset, bytes): anywhere, or at the beginning of a page, where its header is."""
    size = len(sound())
    anywhere = st.integers(0, size - 1)
    headers = st.builds(
        lambda page, place: page * PAGE + place, st.integers(0, size // PAGE - 1), st.integers(0, 40)
    )
    bad = st.binary(min_size=1, max_size=4) | st.sampled_from(
        (b"\0", b"\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff")
    )
    return st.lists(st.tuples(anywhere | headers, bad), min_size=1, max_size=6)


def damaged(damage: list[tuple[int, bytes]], length: int | None) -> bytes:
    data = bytearray(sound())
    for place, content in damage:
        data[place : place + len(content)] = content
    return bytes(data[:length])


@given(damages(), st.none() | st.integers(1, len(sound())))
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
