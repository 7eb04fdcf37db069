"""Programs whose statements fail: a program for each cause that can be produced here.

Each takes the path of a WAL database with a table `t`, catches the exception of the statement that
fails, and closes its connections.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

TIMEOUT_S = 0.2
INSERT = "INSERT INTO t VALUES (1)"
SELECT = "SELECT * FROM t"
PAGE_BYTES = 4096
REPETITIONS = 2
RECOVERY_BYTE = 122
"""Byte of -shm that a connection locks while it recovers the WAL (https://www.sqlite.org/walformat.html)."""
refused = suppress(sqlite3.Error)


def open_file(file: Path | str, timeout: float = TIMEOUT_S, **options: Any) -> Any:
    """Return a connection that its block closes."""
    return closing(sqlite3.connect(file, timeout=timeout, isolation_level=None, **options))


@contextmanager
def rollback_journal(file: Path) -> Iterator[Any]:
    """Open the database in rollback mode."""
    with open_file(file) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        yield connection


# Locks.


def read_before_write(file: Path) -> None:
    with open_file(file) as this, open_file(file) as other:
        this.execute("BEGIN")
        this.execute(SELECT).fetchall()
        other.execute("BEGIN IMMEDIATE")
        with refused:
            this.execute(INSERT)


def stale_snapshot(file: Path) -> None:
    with open_file(file) as this, open_file(file) as other:
        this.execute("BEGIN")
        this.execute(SELECT).fetchall()
        other.execute(INSERT)
        with refused:
            this.execute(INSERT)


def repeated_statement(file: Path) -> None:
    with open_file(file) as this, open_file(file) as other:
        this.execute("BEGIN")
        this.execute(SELECT).fetchall()
        other.execute(INSERT)
        for _ in range(REPETITIONS):
            with refused:
                this.execute(INSERT)


def open_cursor(file: Path) -> None:
    with open_file(file) as this, open_file(file) as other:
        cursor = this.execute(SELECT)
        cursor.fetchone()
        other.execute(INSERT)
        with refused:
            this.execute("BEGIN IMMEDIATE")


def no_timeout(file: Path) -> None:
    with open_file(file, timeout=0) as this, open_file(file) as other:
        other.execute("BEGIN IMMEDIATE")
        with refused:
            this.execute(INSERT)


def busy_handler(file: Path) -> None:
    with closing(apsw.Connection(str(file))) as this, closing(apsw.Connection(str(file))) as other:
        this.set_busy_timeout(5000)
        this.set_busy_handler(lambda calls: calls < 3)
        other.execute("BEGIN IMMEDIATE")
        with suppress(apsw.BusyError):
            this.execute(INSERT)


def waits_for_itself(file: Path) -> None:
    with open_file(file) as this, open_file(file) as other:
        other.execute("BEGIN IMMEDIATE")
        with refused:
            this.execute(INSERT)


def held_longer(file: Path) -> None:
    with other_process(HOLD_WRITE_LOCK, file), open_file(file) as this, refused:
        this.execute(INSERT)


def short_timeout(file: Path) -> None:
    with other_process(HOLD_WRITE_LOCK, file), open_file(file) as this, refused:
        this.execute("PRAGMA busy_timeout = 5")
        this.execute(INSERT)


def transaction_state(file: Path) -> None:
    with open_file(file) as connection:
        connection.execute("BEGIN")
        with refused:
            connection.execute("BEGIN")
        connection.execute("ROLLBACK")


def begin_of_another_thread(file: Path) -> None:
    with open_file(file, check_same_thread=False) as connection:
        thread = threading.Thread(target=connection.execute, args=("BEGIN",))
        thread.start()
        thread.join()
        with refused:
            connection.execute("BEGIN")
        connection.execute("ROLLBACK")


def checkpoint_in_transaction(file: Path) -> None:
    with open_file(file) as connection:
        connection.execute("BEGIN")
        connection.execute(INSERT)
        with refused:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("ROLLBACK")


def lock_order(file: Path) -> None:
    second = file.with_name("second.db")
    with open_file(second) as connection:
        connection.execute("CREATE TABLE u (x)")
    with other_process(HOLD_WRITE_LOCK, second), open_file(file) as this:
        this.execute("ATTACH ? AS other", (str(second),))
        this.execute("BEGIN")
        this.execute(INSERT)
        with refused:
            this.execute("INSERT INTO u VALUES (1)")


def exclusive_mode(file: Path) -> None:
    with open_file(file) as this, other_process(HOLD_EXCLUSIVELY, file):
        this.execute("PRAGMA locking_mode = EXCLUSIVE")
        with refused:
            this.execute(INSERT)


def commit_behind_reader(file: Path) -> None:
    with rollback_journal(file) as this, open_file(file) as other:
        this.execute("BEGIN")
        this.execute(INSERT)
        cursor = other.execute(SELECT)
        cursor.fetchone()
        with refused:
            this.commit()


def wal_switch(file: Path) -> None:
    with rollback_journal(file) as this, open_file(file) as other:
        other.execute("BEGIN IMMEDIATE")
        with refused:
            this.execute("PRAGMA journal_mode = WAL")


def recovery(file: Path) -> None:
    subprocess.run([sys.executable, "-c", CRASH, str(file)], check=True)
    with (
        other_process(LOCK_BYTE, file.with_name(f"{file.name}-shm"), RECOVERY_BYTE),
        open_file(file) as this,
        refused,
    ):
        this.execute(SELECT)


def shared_cache(file: Path) -> None:
    name = f"file:{file}?cache=shared"
    with open_file(name, uri=True) as this, open_file(name, uri=True) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute(INSERT)
        with refused:
            this.execute("BEGIN IMMEDIATE")


def shared_cache_timeout(file: Path) -> None:
    name = f"file:{file}?cache=shared"
    with open_file(name, uri=True) as this, open_file(name, uri=True) as other:
        with other_process(HOLD_WRITE_LOCK, file):
            cursor = other.execute(SELECT)
            cursor.fetchone()
            with refused:
                this.execute(INSERT)
        cursor.close()


def open_statement_of_its_connection(file: Path) -> None:
    with open_file(file) as this:
        cursor = this.execute(SELECT)
        cursor.fetchone()
        with refused:
            this.execute("DROP TABLE t")


def open_blob(file: Path) -> None:
    with open_file(file) as this, open_file(file) as other:
        this.execute("INSERT INTO t VALUES (zeroblob(9))")
        blob = this.blobopen("t", "x", this.execute("SELECT max(rowid) FROM t").fetchone()[0], readonly=True)
        other.execute(INSERT)
        with refused:
            this.execute(INSERT)
        blob.close()


# The file, its folder and the disk.


def moved_database(file: Path) -> None:
    with rollback_journal(file) as this:
        this.execute(SELECT).fetchall()
        file.rename(file.with_name("moved.db"))
        with refused:
            this.execute(INSERT)


def read_only_file(file: Path) -> None:
    with open_file(f"file:{file}?mode=ro", uri=True) as this, refused:
        this.execute(INSERT)


def folder_instead_of_the_wal(file: Path) -> None:
    file.with_name(f"{file.name}-wal").mkdir()
    with open_file(file) as this, refused:
        this.execute(SELECT)


def truncated_wal(file: Path) -> None:
    with open_file(file) as this, open_file(file) as other:
        this.execute("INSERT INTO t VALUES (zeroblob(?))", (9 * PAGE_BYTES,))
        os.truncate(file.with_name(f"{file.name}-wal"), PAGE_BYTES)
        with refused:
            other.execute(SELECT).fetchall()


def overwritten_header(file: Path) -> None:
    with rollback_journal(file):
        pass
    file.write_bytes(b"x" * PAGE_BYTES)
    with open_file(file) as this, refused:
        this.execute(SELECT)


def overwritten_page(file: Path) -> None:
    with rollback_journal(file):
        pass
    file.write_bytes(file.read_bytes()[:PAGE_BYTES].ljust(3 * PAGE_BYTES, b"\xff"))
    with open_file(file) as this, refused:
        this.execute(SELECT)


def limited_file_size(file: Path) -> None:
    if sys.platform == "win32":  # for mypy
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_file(file) as this:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 * PAGE_BYTES, hard))
        try:
            with refused:
                this.execute("INSERT INTO t VALUES (zeroblob(?))", (32 * PAGE_BYTES,))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def limited_pages(file: Path) -> None:
    with open_file(file) as this:
        this.execute("PRAGMA max_page_count = 4")
        with refused:
            this.execute("INSERT INTO t VALUES (zeroblob(?))", (9 * PAGE_BYTES,))


# The program and its data.


def interrupted(file: Path) -> None:
    answers = iter([1])  # A time limit that ends one statement.
    with open_file(file) as this:
        this.set_progress_handler(lambda: next(answers, 0), 1)
        with refused:
            this.execute(INSERT)


def duplicate_key(file: Path) -> None:
    with open_file(file) as this:
        this.execute("CREATE UNIQUE INDEX u ON t (x)")
        with refused:
            this.execute(INSERT)


def conflict_that_rolls_back(file: Path) -> None:
    with open_file(file) as this:
        this.execute("CREATE TABLE loan (book UNIQUE ON CONFLICT ROLLBACK)")
        this.execute("BEGIN")
        this.execute("INSERT INTO loan VALUES (1)")
        with refused:
            this.execute("INSERT INTO loan VALUES (1)")


def foreign_key(file: Path) -> None:
    with open_file(file) as this:
        this.execute("PRAGMA foreign_keys = ON")
        this.execute("CREATE TABLE parent (x PRIMARY KEY)")
        this.execute("CREATE TABLE child (x REFERENCES parent)")
        with refused:
            this.execute("INSERT INTO child VALUES (1)")


def constraint(file: Path) -> None:
    with open_file(file) as this:
        this.execute("CREATE TABLE strict (x NOT NULL)")
        with refused:
            this.execute("INSERT INTO strict VALUES (NULL)")


PROGRAMS: dict[str, Callable[[Path], None]] = {
    "read-before-write": read_before_write,
    "stale-snapshot": stale_snapshot,
    "repeated-statement": repeated_statement,
    "open-cursor": open_cursor,
    "open-blob": open_blob,
    "no-timeout": no_timeout,
    "busy-handler": busy_handler,
    "waits-for-itself": waits_for_itself,
    "short-timeout": short_timeout,
    "checkpoint-in-transaction": checkpoint_in_transaction,
    "transaction-state": transaction_state,
    "begun-by-other-task": begin_of_another_thread,
    "held-longer": held_longer,
    "lock-order": lock_order,
    "exclusive-mode": exclusive_mode,
    "commit-behind-reader": commit_behind_reader,
    "wal-switch": wal_switch,
    "recovery": recovery,
    "shared-cache": shared_cache,
    "shared-cache-timeout": shared_cache_timeout,
    "own-statement": open_statement_of_its_connection,
    "moved-database": moved_database,
    "read-only-file": read_only_file,
    "cannot-open": folder_instead_of_the_wal,
    "short-read": truncated_wal,
    "not-a-database": overwritten_header,
    "damage": overwritten_page,
    "disk-error": limited_file_size,
    "full": limited_pages,
    "interrupted": interrupted,
    "conflict-rolls-back": conflict_that_rolls_back,
    "duplicate-key": duplicate_key,
    "foreign-key": foreign_key,
    "constraint": constraint,
}
"""Programs by the name of the rule."""

NOT_PRODUCED = {
    "left-open-reads": "needs two calls: test_after_calls.py",
    "begun-by-earlier-call": "needs two calls: test_after_calls.py",
    "busy-checkpoint": "PRAGMA wal_checkpoint answers with a row: test_checkpoint_answers.py",
    "checkpoint-race": "PRAGMA wal_checkpoint answers with a row: test_checkpoint_answers.py",
    "blocking-lock": "SQLite must be built with SQLITE_ENABLE_SETLK_TIMEOUT",
    "virtual-table": "needs a virtual table that is locked while it is written",
    "read-only-recovery": "needs a user without write access: tests may run as root",
    "read-only-folder": "needs a user without write access: tests may run as root",
    "dirty-wal": "needs a read-only connection that may not recover, in a build of SQLite that reports it",
    "open-folder": "sqlite3 and apsw report the primary code when they open a file",
    "no-temporary-folder": "needs a system without a writable temporary folder",
    "damaged-index": "SQLite 3.40 deletes without a look at the index",
    "bus-error": "ends the process",
    "lock-failed": "needs a network file system",
    "no-shared-memory": "needs a full disk or too little memory",
    "no-memory": "Python's sqlite3 raises MemoryError without a result code",
    "sync-failed": "needs a failing disk",
    "deleted-journal": "needs a program that keeps the journal open, on Windows",
    "lock-race": "SQLite repeats for ten seconds before it reports it",
    "schema-changed": "SQLite prepares the statement again up to 50 times",
    "misuse": "Python's sqlite3 raises ProgrammingError without a result code",
    "permission": "only file systems that change permissions under an open file",
}
"""Reasons, by the name of the rule, why no program is here."""


# Other processes.

HOLD_WRITE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print(flush=True)
sys.stdin.read()
"""

HOLD_EXCLUSIVELY = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("INSERT INTO t VALUES (1)")
print(flush=True)
sys.stdin.read()
"""

LOCK_BYTE = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))
print(flush=True)
sys.stdin.read()
"""

CRASH = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("INSERT INTO t VALUES (1)")
os._exit(0)
"""


@contextmanager
def other_process(program: str, *words: object) -> Iterator[None]:
    """Run a program until the end of the block, which begins when it has printed a line."""
    command = [sys.executable, "-c", program, *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        try:
            yield
        finally:
            process.communicate()
