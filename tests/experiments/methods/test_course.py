"""An operation is stopped after its time-out, in SQLite and in between; and nothing is, once it is over."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from sqlstress.experiments.methods.binding import Course, TimedOut
from sqlstress.targets.sqlite.drivers import Connection, codes, load_driver
from tests.drivers import WHOLE

ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
SOON_S = 0.05


@pytest.fixture(params=WHOLE)
def driver(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.fixture
def connection(driver: str, tmp_path: Path) -> Iterator[Connection]:
    opened = load_driver(driver).connect(tmp_path / "course.db", 0, None)
    yield opened
    opened.close()


def word() -> array[int]:
    return array("q", [0])


def test_a_statement_that_never_ends_is_interrupted(driver: str, connection: Connection) -> None:
    course = Course(connection, SOON_S, word())
    course.begin()
    with pytest.raises(Exception) as stopped:
        connection.rows(ENDLESS)
    course.end()
    assert load_driver(driver).result_code(stopped.value) == codes.INTERRUPT
    assert connection.rows("SELECT 1") == [(1,)]


def test_a_statement_that_begins_when_it_is_too_late_is_interrupted_too(connection: Connection) -> None:
    course = Course(connection, 0.0, word())
    course.begin()
    while not course.late:
        pass
    with pytest.raises(Exception, match="interrupt"):
        connection.rows(ENDLESS)
    course.end()


def test_what_is_done_one_by_one_ends_between_two_steps_and_says_how_far_it_came(
    connection: Connection,
) -> None:
    told, done = word(), 0
    course = Course(connection, SOON_S, told)
    course.begin()
    with pytest.raises(TimedOut):
        for _ in course.each(count()):
            done += 1
    course.end()
    assert told[0] == done > 0


def test_a_row_counts_when_the_next_one_is_asked_for(connection: Connection) -> None:
    told = word()
    course = Course(connection, 60, told)
    assert [told[0] for _ in course.each("abc")] == [0, 1, 2]
    assert told[0] == 3
    assert list(course.each("")) == []
    assert told[0] == 0


def test_what_ends_in_time_is_not_disturbed(connection: Connection) -> None:
    course = Course(connection, 60, word())
    course.begin()
    connection.rows("SELECT 1")
    course.end()
    course.end()
    assert not course.late
