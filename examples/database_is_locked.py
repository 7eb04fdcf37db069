"""Meet each kind of "database is locked" on purpose, and what avoids it.

    python examples/database_is_locked.py [FOLDER]

Two connections of one process lock each other out as those of two processes do.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread, Timer

Attempt = Callable[[], object]
Prepare = Callable[[sqlite3.Connection, sqlite3.Connection], Iterator[Attempt]]
"""Function that prepares a situation of two connections, yields the first one's attempt, and cleans up."""

SITUATIONS: list[tuple[str, float, str, Prepare]] = []
"""Situations: description, the first connection's timeout in seconds, journal mode, preparation."""
SHORT_S, USUAL_S = 0.2, 5.0
READ = "SELECT count(*) FROM t"
WRITE = "INSERT INTO t VALUES (1)"


def situation(what: str, timeout_s: float = USUAL_S, journal: str = "wal") -> Callable[[Prepare], Prepare]:
    """Add a function to the list."""

    def add(prepare: Prepare) -> Prepare:
        SITUATIONS.append((what, timeout_s, journal, prepare))
        return prepare

    return add


def begin(connection: sqlite3.Connection, statement: str) -> None:
    """Be in a transaction that has read, or that has written."""
    connection.execute("BEGIN")
    connection.execute(statement).fetchall()


@situation("no timeout: somebody writes, I write", timeout_s=0)
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    begin(other, WRITE)
    yield lambda: me.execute(WRITE)


@situation("long enough: somebody writes for 1 s, I write")
@situation("too short: somebody writes for 1 s, I write", timeout_s=SHORT_S)
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    begin(other, WRITE)
    commit = Timer(1.0, other.commit)
    commit.start()
    yield lambda: me.execute(WRITE)
    commit.join()


@situation("BEGIN, I read, somebody commits, I write")
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    begin(me, READ)
    other.execute(WRITE)
    yield lambda: me.execute(WRITE)


@situation("BEGIN, I read, somebody writes for 1 s, I write")
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    begin(me, READ)
    begin(other, WRITE)
    yield lambda: me.execute(WRITE)


@situation("the same, but I BEGIN IMMEDIATE")
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    begin(other, WRITE)
    commit = Timer(1.0, other.commit)
    commit.start()
    yield lambda: [me.execute(statement) for statement in ("BEGIN IMMEDIATE", READ, WRITE, "COMMIT")]
    commit.join()


@situation("I fetch 1 row of many, somebody commits, I write")
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    rows = me.execute("SELECT x FROM t")
    rows.fetchone()
    other.execute(WRITE)
    yield lambda: me.execute(WRITE)
    rows.close()


@situation("RESTART checkpoint behind a reader, I write", timeout_s=SHORT_S)
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    (_, _, file), *_ = other.execute("PRAGMA database_list")
    with closing(connect(file, 0)) as reader:
        begin(reader, READ)
        other.execute(WRITE)
        checkpoint = Thread(target=other.execute, args=["PRAGMA wal_checkpoint(RESTART)"])
        checkpoint.start()
        time.sleep(0.2)  # by then it waits for the reader, and holds the write lock
        yield lambda: me.execute(WRITE)
    checkpoint.join()


@situation("without WAL: somebody reads, I write", timeout_s=SHORT_S, journal="delete")
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    begin(other, READ)
    yield lambda: me.execute(WRITE)


@situation("not yet WAL: somebody writes, I switch to WAL", journal="delete")
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    begin(other, WRITE)
    yield lambda: me.execute("PRAGMA journal_mode=wal")


@situation("already WAL: somebody writes, I ask for WAL")
def _(me: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[Attempt]:
    begin(other, WRITE)
    yield lambda: me.execute("PRAGMA journal_mode=wal")


def connect(file: str | Path, timeout_s: float) -> sqlite3.Connection:
    """Open a file so that each statement is a transaction, but for those after a BEGIN."""
    return sqlite3.connect(file, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def answer(attempt: Attempt) -> tuple[str, float]:
    """Return SQLite's answer, and the seconds until it came."""
    begun = time.perf_counter()
    try:
        attempt()
        said = "done"
    except sqlite3.OperationalError as error:
        said = error.sqlite_errorname
    return said, time.perf_counter() - begun


def main(folder: Path) -> None:
    print(f"SQLite {sqlite3.sqlite_version}\n")
    print(f"{'situation':<49}  timeout  answer")
    for number, (what, timeout_s, journal, prepare) in enumerate(SITUATIONS):
        file = folder / f"{number}.db"
        with closing(connect(file, timeout_s)) as me, closing(connect(file, 1.0)) as other:
            me.execute(f"PRAGMA journal_mode={journal}")
            me.executescript("BEGIN; CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3); COMMIT")
            for attempt in prepare(me, other):
                said, after_s = answer(attempt)
                print(f"{what:<49} {timeout_s:>6g} s  {said} after {after_s:.1f} s", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as temporary:
        main(Path(temporary))
