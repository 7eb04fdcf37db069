"""The end of a call finds all that the call left, although most calls are only counted."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import sqlalchemy

from sqlstress.recording import (
    AFTER_BEGIN,
    CALL_COST,
    CAUGHT,
    FAILED_STATEMENT,
    LEFT_OPEN,
    LOST_LOCKS,
    NOT_COMMITTED,
    OPEN_STATEMENT,
    REPEATED,
    history,
)
from sqlstress.recording.after_calls import LONG_OPEN_S
from sqlstress.recording.failed_statements import FailedStatements

INSERT = "INSERT INTO t VALUES (1)"
UPDATE = "UPDATE t SET x = 2"


def run_all(connection: sqlite3.Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        connection.execute(statement)


@contextmanager
def call(recorder: FailedStatements) -> Iterator[None]:
    """Run the block as a call of the user's function, without an exception."""
    recorder.costs.begin()
    yield
    recorder.end_call("work")


@pytest.fixture
def connection(file: Path, recorder: FailedStatements) -> Iterator[sqlite3.Connection]:
    """Return a connection from before the calls, on which two calls have run that leave nothing."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for _ in range(2):
            with call(recorder):
                connection.execute("SELECT * FROM t").fetchall()
        yield connection


def counts(recorder: FailedStatements, topic: str) -> list[tuple[str, int]]:
    return [(what, count) for kind, what, count, _, _ in recorder.records() if kind == topic]


def begin(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    connection.execute(INSERT)


def close(connection: sqlite3.Connection) -> None:
    begin(connection)
    connection.close()


def test_each_rollback_by_a_pool_is_found(file: Path, recorder: FailedStatements) -> None:
    """The connection stays open, and no transaction is open at the end of a call."""
    engine = sqlalchemy.create_engine(f"sqlite:///{file}")
    for _ in range(20):
        with call(recorder), engine.connect() as connection:
            connection.exec_driver_sql(INSERT)
    engine.dispose()
    # The first observation has no line, the others have it.
    assert sum(count for _, count in counts(recorder, LEFT_OPEN)) == 20


@pytest.mark.parametrize("leave", [begin, close])
def test_transaction_left_open_is_found(
    leave: Callable[[sqlite3.Connection], None], connection: sqlite3.Connection, recorder: FailedStatements
) -> None:
    with call(recorder):
        leave(connection)
    with call(recorder):
        pass
    assert counts(recorder, LEFT_OPEN) == [("work", 2 if leave is begin else 1)]


def test_rollback_by_a_later_call_is_found(
    connection: sqlite3.Connection, recorder: FailedStatements
) -> None:
    with call(recorder):
        begin(connection)
    with call(recorder):
        connection.execute("ROLLBACK")
    assert counts(recorder, NOT_COMMITTED) == [("work", 1)]


def test_repeated_transaction_is_found(
    file: Path, connection: sqlite3.Connection, recorder: FailedStatements
) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other, call(recorder):
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM t").fetchall()
        other.execute(INSERT)
        with suppress(sqlite3.OperationalError):
            connection.execute(INSERT)
        connection.execute("ROLLBACK")
        begin(connection)
        connection.execute("COMMIT")
    assert counts(recorder, REPEATED) == [("work", 1)]


@pytest.mark.parametrize(
    ("then", "is_named"),
    [(["COMMIT"], True), (["INSERT INTO t VALUES (2)", "COMMIT"], True)]
    + [([sql, "COMMIT"], False) for sql in ("UPDATE once SET n = 2", "ROLLBACK TO s", "ROLLBACK; BEGIN")],
)
def test_commit_after_the_error_of_a_later_write_is_found(
    then: list[str], is_named: bool, connection: sqlite3.Connection, recorder: FailedStatements
) -> None:
    connection.execute("CREATE TABLE once (n CHECK (n < 9))")
    with call(recorder):
        for sql in ("BEGIN", "SAVEPOINT s", INSERT):
            connection.execute(sql)
        with suppress(sqlite3.IntegrityError):
            connection.execute("INSERT INTO once VALUES (9)")
        for sql in "; ".join(then).split("; "):
            connection.execute(sql)
    found = [traits["after"] for topic, *_, traits in recorder.records() if topic == REPEATED]
    assert found == [CAUGHT] * is_named


@pytest.mark.parametrize(
    ("after", "is_twice"),
    [
        ([[INSERT], [UPDATE]], True),
        ([[UPDATE]], False),
        ([[INSERT], [INSERT]], False),
        ([[INSERT, UPDATE], [UPDATE]], False),
    ],
    ids=["repeats_all", "repeats_the_second", "loop", "other_transaction"],
)
def test_committed_transaction_that_is_repeated_after_a_refused_begin_is_found(
    after: list[list[str]], *, is_twice: bool, file: Path, recorder: FailedStatements
) -> None:
    with (
        closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection,
        closing(sqlite3.connect(file, isolation_level=None)) as other,
        call(recorder),
    ):
        run_all(connection, ["BEGIN", INSERT, "COMMIT"])
        other.execute("BEGIN IMMEDIATE")
        with suppress(sqlite3.OperationalError):
            connection.execute("BEGIN IMMEDIATE")
        other.execute("COMMIT")
        for writes in after:
            run_all(connection, ["BEGIN IMMEDIATE", *writes, "COMMIT"])
    found = [
        (traits["committed"], traits["after"])
        for topic, *_, traits in recorder.records()
        if topic == REPEATED
    ]
    assert found == [("INSERT INTO t VALUES (N)", AFTER_BEGIN)] * is_twice


@pytest.mark.parametrize("again", [False, True])
def test_read_counts_as_repeated_only_if_it_ran_again(
    file: Path, recorder: FailedStatements, *, again: bool
) -> None:
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        with closing(sqlite3.connect(file, isolation_level=None)) as other, call(recorder):
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(sqlite3.OperationalError):
                connection.execute("SELECT * FROM t")
            other.execute("COMMIT")
            if again:
                connection.execute("SELECT * FROM t").fetchall()
    ((_, _, _, _, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert (traits["repeated_calls"], traits["given_up"]) == (str(int(again)), "0")


def store(connection: sqlite3.Connection, keys: Sequence[int], *, again: bool = False) -> None:
    """Insert keys; roll back at a key that exists, and go on, or begin `again` without this key."""
    connection.execute("BEGIN")
    for number, key in enumerate(keys):
        try:
            connection.execute("INSERT INTO once VALUES (?)", (key,))
        except sqlite3.IntegrityError:
            connection.execute("ROLLBACK")
            if again:
                store(connection, [*keys[:number], *keys[number + 1 :]])
                return
            connection.execute("BEGIN")
    connection.execute("COMMIT")


@pytest.mark.parametrize("again", [False, True])
def test_rollback_that_undoes_earlier_rows_of_a_batch_is_found(
    connection: sqlite3.Connection, recorder: FailedStatements, *, again: bool
) -> None:
    connection.execute("CREATE TABLE once (n PRIMARY KEY)")
    connection.execute("INSERT INTO once VALUES (3)")
    with call(recorder):
        store(connection, [1, 2, 3, 4], again=again)
    assert counts(recorder, REPEATED) == ([] if again else [("work", 1)])


@pytest.mark.parametrize(
    ("mode", "kinds"), [("immutable=1", ["immutable"]), ("nolock=1", ["no locks"]), ("mode=ro", [])]
)
def test_connection_without_locks_is_found_if_the_database_is_written(
    file: Path, connection: sqlite3.Connection, recorder: FailedStatements, mode: str, kinds: list[str]
) -> None:
    with closing(sqlite3.connect(f"{file.as_uri()}?{mode}", uri=True)):
        assert counts(recorder, LOST_LOCKS) == []
        connection.execute(INSERT)
        connection.execute("SELECT 1")
        assert counts(recorder, LOST_LOCKS) == [(kind, 1) for kind in kinds]


def test_open_query_is_found(connection: sqlite3.Connection, recorder: FailedStatements) -> None:
    cursor = connection.execute("SELECT * FROM t")
    for _ in range(3):
        with call(recorder):
            cursor.fetchone()
        time.sleep(LONG_OPEN_S)
    assert counts(recorder, OPEN_STATEMENT) == [("SELECT * FROM t", 1)]


def test_all_calls_are_counted(connection: sqlite3.Connection, recorder: FailedStatements) -> None:
    for number in range(4):
        with call(recorder):
            for _ in range(2 if number == 1 else 0):
                connection.execute(INSERT)
            connection.execute("SELECT * FROM t").fetchall()
    assert counts(recorder, CALL_COST) == [("work", 6)]


def test_opened_connection_is_counted(
    file: Path, connection: sqlite3.Connection, recorder: FailedStatements
) -> None:
    with call(recorder):
        other = sqlite3.connect(file)
    with closing(other):
        assert counts(recorder, CALL_COST) == [("work", 3)]


def test_number_of_kept_texts_is_limited(
    connection: sqlite3.Connection, recorder: FailedStatements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_ORDINARY", 3)
    for number in range(9):
        connection.execute(f"SELECT {number}")
    connection.execute(f"SELECT '{'x' * history.MAX_ORDINARY_CHARS}'")
    known = recorder._histories[-1].ordinary
    assert "SELECT 8" in known
    assert len(known) <= 3
    assert max(map(len, known)) < 20
