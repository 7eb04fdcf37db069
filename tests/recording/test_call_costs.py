"""Connections and commits of calls, counted while the user's code runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from sqlstress.recording import CALL_COST
from sqlstress.recording.failed_statements import FailedStatements
from tests.recording.failing_programs import INSERT, open_file

ROWS = [(number,) for number in range(20)]


def costs(recorder: FailedStatements) -> dict[str, dict[str, str]]:
    return {what: traits for topic, what, _, _, traits in recorder.records() if topic == CALL_COST}


def each_in_autocommit(connection: Any) -> None:
    for _ in ROWS:
        connection.execute(INSERT)


def each_in_a_transaction(connection: Any) -> None:
    for _ in ROWS:
        connection.execute("BEGIN")
        connection.execute(INSERT)
        connection.execute("COMMIT")


def many_in_autocommit(connection: Any) -> None:
    connection.executemany("INSERT INTO t VALUES (?)", ROWS)


def all_in_a_transaction(connection: Any) -> None:
    connection.execute("BEGIN")
    for _ in ROWS:
        connection.execute(INSERT)
    connection.execute("COMMIT")


def only_reads(connection: Any) -> None:
    for _ in ROWS:
        connection.execute("SELECT * FROM t").fetchall()


COMMITS: dict[Callable[[Any], None], int] = {
    each_in_autocommit: 20,
    each_in_a_transaction: 20,
    many_in_autocommit: 20,
    all_in_a_transaction: 0,
    only_reads: 0,
}


@contextmanager
def call(recorder: FailedStatements, name: str) -> Iterator[None]:
    """Run the block as a call of the user's function."""
    recorder.costs.begin()
    try:
        yield
    finally:
        recorder.costs.end(name)


@pytest.mark.parametrize("work", COMMITS)
def test_commits_of_a_call_are_counted(
    work: Callable[[Any], None], file: Path, recorder: FailedStatements
) -> None:
    with open_file(file) as connection:
        with call(recorder, "work"):
            work(connection)
            only_reads(connection)
        with call(recorder, "other"):
            only_reads(connection)
    commits = {call: int(cost["commits"]) for call, cost in costs(recorder).items()}
    assert commits == ({"work": COMMITS[work]} if COMMITS[work] else {})


def test_commits_of_apsw_are_counted(file: Path, recorder: FailedStatements) -> None:
    with (
        closing(apsw.Connection(str(file))) as connection,
        call(recorder, "work"),
    ):
        each_in_autocommit(connection)
        only_reads(connection)
    assert costs(recorder)["work"]["commits"] == "20"


def test_call_that_fails_is_counted(file: Path, recorder: FailedStatements) -> None:
    with pytest.raises(ZeroDivisionError), call(recorder, "work"), open_file(file):
        raise ZeroDivisionError
    assert costs(recorder)["work"]["connections"] == "1"


def test_connections_to_a_new_copy_are_not_counted(
    file: Path, tmp_path: Path, recorder: FailedStatements
) -> None:
    copy = tmp_path / "copy.db"
    with open_file(file) as source, call(recorder, "backup"):
        with closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        with closing(sqlite3.connect(copy)) as this:
            this.execute("PRAGMA integrity_check").fetchall()
            this.execute("SELECT * FROM t").fetchall()
    assert (recorder.costs.opening_s, "backup" in costs(recorder)) == (0.0, False)
    with call(recorder, "read"), closing(sqlite3.connect(copy)):
        pass
    assert costs(recorder)["read"]["connections"] == "1"


def test_opening_ends_with_the_first_statement_that_is_no_pragma(
    file: Path, recorder: FailedStatements
) -> None:
    with call(recorder, "work"), closing(sqlite3.connect(file)) as this:
        times_s = [recorder.costs.opening_s]
        for sql in ("PRAGMA foreign_keys = ON", "SELECT * FROM t", "SELECT * FROM t"):
            this.execute(sql).fetchall()
            times_s.append(recorder.costs.opening_s)
    connect_s, pragma_s, first_s, second_s = times_s
    assert 0 < connect_s < pragma_s < first_s == second_s
    assert recorder.costs.first_s == pytest.approx(first_s - pragma_s)
    assert costs(recorder)["work"]["connections"] == "1"
