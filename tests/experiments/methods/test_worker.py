"""A worker's operation is stopped after its time-out, refused at a limit, and its answer judged."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from sqlstress import sqlite_codes as codes
from sqlstress.engine.protocols import Findings
from sqlstress.experiments.classics.methods_tables import value
from sqlstress.experiments.classics.methods_worker import (
    CellCourse,
    LimitReached,
    TimedOut,
    check_answer,
    objections,
    refusal,
)
from sqlstress.targets.sqlite.drivers import Connection, Row, load_driver
from tests.drivers import WHOLE

ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
SOON_S = 0.05


@pytest.fixture(params=WHOLE)
def driver(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.fixture
def connection(driver: str, tmp_path: Path) -> Iterator[Connection]:
    opened = load_driver(driver).connect(tmp_path / "course.db", 0)
    yield opened
    opened.close()


def word() -> array[int]:
    return array("q", [0])


def test_endless_statement_is_interrupted(driver: str, connection: Connection) -> None:
    course = CellCourse(connection, SOON_S, word())
    course.begin()
    with pytest.raises(Exception) as stopped:
        connection.rows(ENDLESS)
    course.end()
    assert load_driver(driver).result_code(stopped.value) == codes.INTERRUPT
    assert connection.rows("SELECT 1") == [(1,)]


def test_statement_begun_after_the_time_limit_is_interrupted(connection: Connection) -> None:
    course = CellCourse(connection, 0.0, word())
    course.begin()
    while not course.late:
        pass
    with pytest.raises(Exception, match="interrupt"):
        connection.rows(ENDLESS)
    course.end()


def test_timed_out_steps_end_between_two_steps_and_are_counted(
    connection: Connection,
) -> None:
    acknowledged, done = word(), 0
    course = CellCourse(connection, SOON_S, acknowledged)
    course.begin()
    with pytest.raises(TimedOut):
        for _ in course.steps(count()):
            done += 1
    course.end()
    assert acknowledged[0] == done > 0


def test_row_counts_once_its_successor_is_requested(connection: Connection) -> None:
    acknowledged = word()
    course = CellCourse(connection, 60, acknowledged)
    assert [acknowledged[0] for _ in course.steps("abc")] == [0, 1, 2]
    assert acknowledged[0] == 3
    assert list(course.steps("")) == []
    assert acknowledged[0] == 0


def test_statement_that_ends_in_time_is_not_interrupted(connection: Connection) -> None:
    course = CellCourse(connection, 60, word())
    course.begin()
    connection.rows("SELECT 1")
    course.end()
    course.end()
    assert not course.late


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {'(' * 3000}1{')' * 3000}",
        f"SELECT {'+'.join(['1'] * 5000)}",
        " UNION ALL ".join(["SELECT 1"] * 600),
        f"SELECT {','.join(['?'] * 260_000)}",
    ],
    ids=["nesting", "depth", "compound", "variables"],
)
def test_sqlite_refusing_a_large_statement_is_a_limit(query: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as refused:
        connection.execute(query)
    assert refusal(refused.value) == str(refused.value)


def test_recursion_limit_is_a_limit_and_other_errors_are_not() -> None:
    assert "Python's recursion limit" in (refusal(RecursionError("maximum recursion depth")) or "")
    assert refusal(LimitReached("9 parameters")) == "9 parameters"
    for query in ("SELECT * FROM nothing", "SELECT ((1", "SELEC 1"):
        with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as failed:
            connection.execute(query)
        assert refusal(failed.value) is None


SEED = 3
WANTED = [(1, 2), (4, 9), (2, 3)]
RIGHT: list[Row] = [(a, b, value(a, b, SEED)) for a, b in WANTED]


@pytest.mark.parametrize("answer", [RIGHT, RIGHT[::-1]])
def test_right_rows_are_accepted_in_any_order(answer: list[Row]) -> None:
    assert list(objections(answer, WANTED, SEED)) == []


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        (RIGHT[1:], ["lacks the result (1, 2, "]),
        ([*RIGHT, RIGHT[0]], ["has the result (1, 2, "]),
        ([*RIGHT, (5, 6, 1.0)], ["has the result (5, 6, 1.0)"]),
        ([*RIGHT[:2], (2, 3, -1.0)], ["lacks the result (2, 3, ", "has the result (2, 3, -1.0)"]),
        ([], ["lacks"] * 3),
    ],
)
def test_every_wrong_row_is_named(answer: list[Row], because: list[str]) -> None:
    found = list(objections(answer, WANTED, SEED))
    assert len(found) == len(because)
    for text, part in zip(found, because, strict=True):
        assert part in text


def test_wrong_answers_and_checked_answers_are_counted() -> None:
    findings = Findings()
    check_answer(RIGHT, WANTED, SEED, findings)
    check_answer([], WANTED * 2, SEED, findings)
    assert (findings.reads_checked, findings.bad_reads, len(findings.bad_read_examples)) == (9, 3, 3)
