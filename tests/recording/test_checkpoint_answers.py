"""Busy checkpoints of the user's code, and the rows that a cursor returns although they were read ahead."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from sqlstress.analysis.causes import diagnose
from sqlstress.recording import FAILED_STATEMENT
from sqlstress.recording.failed_statements import FailedStatements
from sqlstress.recording.failure_facts import facts_of

RESTART = "PRAGMA wal_checkpoint(RESTART)"
PROBE = "PRAGMA wal_checkpoint(PASSIVE)"
TIMEOUT_S = 0.2


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Return a connection with a snapshot of a WAL that has frames after it. Other threads may use it."""
    with closing(connect(tmp_path)) as writer, closing(connect(tmp_path)) as reader:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (a)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        writer.execute("INSERT INTO t VALUES (1)")
        yield reader


def connect(folder: Path, timeout: float = TIMEOUT_S) -> sqlite3.Connection:
    name = folder / "app.db"
    return sqlite3.connect(name, timeout=timeout, isolation_level=None, check_same_thread=False)


def causes(recorder: FailedStatements, sql: str = RESTART) -> list[tuple[int, str]]:
    """Return the number of failures of each kind of a statement, with the name of their cause."""
    named = []
    for topic, what, count, _, traits in recorder.records():
        if (topic, what) == (FAILED_STATEMENT, sql):
            timeout_ms = int(traits["timeout_ms"])
            facts = facts_of(traits, float(traits["waited_ms"]), timeout_ms)
            cause = diagnose(int(traits["code"]), facts).cause
            named.append((count, cause.name if cause else ""))
    return named


def test_checkpoint_behind_a_reader_is_counted_without_a_fetch(
    recorder: FailedStatements, reader: sqlite3.Connection, tmp_path: Path
) -> None:
    with closing(connect(tmp_path)) as connection:
        for _ in range(2):
            connection.execute(RESTART)
        reader.execute("COMMIT")
        connection.execute(RESTART)
    assert causes(recorder) == [(2, "busy-checkpoint")]


def wait_in_checkpoint(connection: sqlite3.Connection) -> None:
    """Wait for the reader in a checkpoint, which keeps the lock of checkpoints. A probe may come first."""
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (1, -1, -1):
        time.sleep(0.01)


def test_checkpoint_during_another_is_refused_at_once(
    recorder: FailedStatements, reader: sqlite3.Connection, tmp_path: Path
) -> None:
    with closing(connect(tmp_path, timeout=600)) as slow, closing(connect(tmp_path)) as connection:
        other = Thread(target=wait_in_checkpoint, args=(slow,))
        other.start()
        while not connection.execute(PROBE).fetchone()[0]:
            time.sleep(0.01)
        answer = connection.execute(RESTART).fetchone()
        reader.execute("COMMIT")
        other.join()
    assert answer == (1, -1, -1)
    assert causes(recorder) == [(1, "checkpoint-race")]


def first(cursor: Any) -> Any:
    return cursor.fetchone()


def only(cursor: Any) -> Any:
    (row,) = cursor
    return row


def all_of(cursor: Any) -> Any:
    (row,) = cursor.fetchall()
    return row


def many(cursor: Any) -> Any:
    (row,) = cursor.fetchmany(5)
    return row


@pytest.mark.parametrize("fetch", [first, only, all_of, many])
@pytest.mark.parametrize("factory", [None, sqlite3.Row])
def test_rows_are_those_of_the_library(
    fetch: Callable[[Any], Any], factory: Any, recorder: FailedStatements, tmp_path: Path
) -> None:
    with closing(connect(tmp_path)) as connection:
        connection.row_factory = factory
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        row = fetch(cursor.execute("PRAGMA wal_checkpoint"))
        assert tuple(row) == (0, 0, 0) and (not factory or row["busy"] == 0)
        assert cursor.fetchone() is None and cursor.fetchall() == []
        assert [column[0] for column in cursor.description] == ["busy", "log", "checkpointed"]
        assert repr(cursor).startswith("<sqlite3.Cursor")
        assert [tuple(row) for row in cursor.execute("SELECT 1 UNION SELECT 2")] == [(1,), (2,)]
    assert recorder.records() == []


class OwnFetch(sqlite3.Cursor):
    """Cursor whose rows are the user's."""

    def fetchone(self) -> Any:
        return {"busy": super().fetchone()[0]}


def test_cursor_with_its_own_methods_stays_as_it_is(recorder: FailedStatements, tmp_path: Path) -> None:
    with closing(connect(tmp_path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        cursor = connection.cursor(OwnFetch)
        assert cursor.execute("PRAGMA wal_checkpoint").fetchone() == {"busy": 0}
