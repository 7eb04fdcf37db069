"""Exceptions are classified by SQLite's error code, even if they are wrapped."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import peewee
import pytest
import sqlalchemy

from sqlstress.experiments.app.worker import Errors, code_of, name_of
from sqlstress.sqlite_codes import BUSY, BUSY_SNAPSHOT
from sqlstress.user_work.source import MAX_KINDS


def by_sqlite(path: str) -> None:
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")


def by_sqlalchemy(path: str) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})
    try:
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("INSERT INTO t VALUES (1)"))
    finally:
        engine.dispose()


def by_peewee(path: str) -> None:
    with closing(peewee.SqliteDatabase(path, timeout=0)) as database:
        database.execute_sql("INSERT INTO t VALUES (1)")  # type: ignore[no-untyped-call]


def by_apsw(path: str) -> None:
    apsw = pytest.importorskip("apsw")
    with closing(apsw.Connection(path)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")


@pytest.mark.parametrize("write", [by_sqlite, by_sqlalchemy, by_peewee, by_apsw])
def test_lock_is_recognized_in_every_wrapper(write: Callable[[str], None], tmp_path: Path) -> None:
    path = str(tmp_path / "app.db")
    connect: Any = pytest.importorskip("apsw").Connection if write is by_apsw else sqlite3.connect
    # By the same library: another library in this process would not see its lock.
    with closing(connect(path)) as holder:
        holder.execute("CREATE TABLE t (x)")
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(Exception) as caught:
            write(path)
    assert (code_of(caught.value), name_of(caught.value)) == (BUSY, "SQLITE_BUSY")


def snapshot(path: Path) -> sqlite3.OperationalError:
    """Return SQLite's error for a write after a read of an outdated snapshot."""
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as one,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        one.execute("PRAGMA journal_mode=WAL")
        one.execute("CREATE TABLE t (x)")
        one.execute("BEGIN")
        one.execute("SELECT * FROM t").fetchall()
        other.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(sqlite3.OperationalError) as caught:
            one.execute("INSERT INTO t VALUES (2)")
        return caught.value


def test_busy_snapshot_is_counted_and_other_errors_by_class(tmp_path: Path) -> None:
    errors = Errors()
    inner = snapshot(tmp_path / "app.db")
    wrapped = RuntimeError("Django's")
    wrapped.__cause__ = inner
    for error in (inner, wrapped, wrapped, ValueError("first\nof two"), ValueError("second")):
        errors.add("transfer", error)
    assert (errors.busy, errors.busy_snapshot) == (0, 3)
    assert code_of(wrapped) == BUSY_SNAPSHOT
    assert errors_of(errors) == [
        ("SQLITE_BUSY_SNAPSHOT", "sqlite3.OperationalError", 1, "database is locked"),
        ("SQLITE_BUSY_SNAPSHOT", "RuntimeError", 2, "Django's"),
        ("ValueError", "ValueError", 2, "first of two"),
    ]


def errors_of(errors: Errors) -> list[tuple[str, str, int, str]]:
    return [
        (what, traits["raised"], count, example) for _, what, count, example, traits in errors.sightings()
    ]


class Refused(Exception):
    """An exception as a library for PostgreSQL raises it, with the server's SQLSTATE as an attribute."""

    def __init__(self, name: str, state: object) -> None:
        super().__init__("refused")
        setattr(self, name, state)


def test_wrapped_refusals_of_a_server_are_counted_by_sqlstate() -> None:
    errors = Errors()
    wrapped = RuntimeError("Django's")
    wrapped.__cause__ = Refused("pgcode", "40P01")
    for error in (Refused("sqlstate", "40001"), wrapped, Refused("sqlstate", "55P03")):
        errors.add("transfer", error)
    assert (errors.busy, errors.busy_snapshot) == (2, 1)
    for state in ("23505", None, "x" * 1000, 5):
        errors.add("transfer", Refused("sqlstate", state))
    assert (errors.busy, errors.busy_snapshot) == (2, 1)
    kinds = [what for what, _, _, _ in errors_of(errors)]
    assert kinds[:4] == ["SQLSTATE 40001", "SQLSTATE 40P01", "SQLSTATE 55P03", "SQLSTATE 23505"]
    assert len(kinds) == 5 and kinds[4].endswith("Refused")


class Odd(Exception):
    def __str__(self) -> str:
        raise TypeError


def test_odd_exceptions_are_counted_in_little_space() -> None:
    errors = Errors()
    errors.add("odd", Odd())
    errors.add("long", ValueError("x" * 10**6))
    circle = ValueError("circle")
    circle.__context__ = circle
    errors.add("circle", circle)
    for number in range(100):
        errors.add(f"transaction {number}", KeyError(number))
    found = errors_of(errors)
    assert len(found) == MAX_KINDS + 1 and sum(count for _, _, count, _ in found) == 103
    assert max(len(example) for _, _, _, example in found) == 160
    assert found[0][3] == "(it can't be written)"
