"""Checks: a broken check is reported with its first rows, and each check has a time limit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.plan import cases_of
from sqlstress.targets.sqlite.drivers import Connection, load_driver
from sqlstress.targets.sqlite.place import SqlitePlace, SqliteReader
from sqlstress.user_work.checks import MAX_FAILED_OPENS, Checker, CheckFailure, CheckNotRun, Checks
from sqlstress.user_work.options import Invariant

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(params=["sqlite3", "apsw"])
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connection(driver: str, tmp_path: Path) -> Iterator[Connection]:
    with closing(load_driver(driver).connect(tmp_path / "kv.db", 1000)) as connection:
        connection.rows("CREATE TABLE t (x)")
        connection.rows("INSERT INTO t VALUES (1), (2), (3), (4)")
        yield connection


def broken(
    driver: str, connection: Connection, *invariants: Invariant, timeout_s: float = 5.0
) -> list[CheckFailure]:
    return list(Checks(invariants, timeout_s).broken(SqliteReader(driver, connection)))


def test_query_without_rows_holds_and_rows_are_shown(driver: str, connection: Connection) -> None:
    holds = Invariant("few", "c.sql:1", "SELECT x FROM t WHERE x > 9")
    breaks = Invariant("small", "c.sql:2", "SELECT x, 'a' FROM t WHERE x > 0")
    assert broken(driver, connection, holds, breaks) == [
        CheckFailure("small", 4, ("(1, 'a')", "(2, 'a')", "(3, 'a')"))
    ]
    assert not connection.in_transaction()


def test_function_that_raises_is_broken_with_its_message(
    driver: str, connection: Connection, tmp_path: Path
) -> None:
    (tmp_path / "c.py").write_text(
        "def holds(query): assert query('SELECT sum(x) FROM t WHERE x > ?', [0]) == [(10,)]\n"
        "def breaks(query): assert query('SELECT 1') == [], 'there is one'\n"
        "def raises(query): {}['a']\n"
        "def is_true(query): return query('SELECT 1') == [(1,)]\n"
        "def is_false(query): return query('SELECT 1') == []\n"
    )
    where = str(tmp_path / "c.py")
    functions = [
        Invariant(name, f"{where}:{name}") for name in ("holds", "breaks", "raises", "is_true", "is_false")
    ]
    assert broken(driver, connection, *functions) == [
        CheckFailure("breaks", 1, ("there is one",)),
        CheckFailure("raises", 1, ("KeyError: 'a'",)),
        CheckFailure("is_false", 1, ("it returned False",)),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def money(query): return query('SELECT 1')", r"money .* returned a list\. Raise AssertionError"),
        (
            "def money(c): return c.execute('SELECT 1')",
            r'uses its parameter as a connection.* query\("SELECT',
        ),
        ("def money(c, seen): pass", r"cannot be called: missing a required argument: 'seen'.* notes\.of"),
    ],
)
def test_function_with_another_interface_is_an_error(
    driver: str, connection: Connection, tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "c.py").write_text(text)
    with pytest.raises(CheckNotRun, match=problem):
        broken(driver, connection, Invariant("money", f"{tmp_path / 'c.py'}:money"))


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (ENDLESS, r"the check money \(c.sql:1\) took longer than 0.05 s"),
        ("SELECT * FROM gone", "failed to run: .*no such table: gone"),
        ("PRAGMA user_version; DELETE FROM t", "failed to run"),
    ],
)
def test_check_without_a_result_is_an_error(driver: str, connection: Connection, sql: str, text: str) -> None:
    with pytest.raises(CheckNotRun, match=text):
        broken(driver, connection, Invariant("money", "c.sql:1", sql), timeout_s=0.05)
    assert not connection.in_transaction()
    assert connection.rows("SELECT count(*) FROM t") == [(4,)]


UNLOADABLE = ("def money(:", "1 / 0", "import sys; sys.exit(3)", "other = 1")
IDLE = ("async def money(query): 1 / 0", "def money(query): yield 1 / 0", "money = 3")


@pytest.mark.parametrize("text", (*UNLOADABLE, *IDLE))
def test_function_that_cannot_check_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.py").write_text(text)
    problem = "cannot load" if text in UNLOADABLE else "checks nothing"
    with pytest.raises(CheckNotRun, match=problem):
        Checks([Invariant("money", f"{tmp_path / 'c.py'}:money")], 5.0)


@pytest.mark.thorough
def test_function_that_is_too_slow_or_exits_is_an_error(
    driver: str, connection: Connection, tmp_path: Path
) -> None:
    file = tmp_path / "c.py"
    file.write_text("import sys, time\ndef slow(query): time.sleep(0.3)\ndef leaves(query): sys.exit(3)")
    slow = Invariant("slow", f"{file}:slow")
    with pytest.raises(CheckNotRun, match=r"slow .* took longer than 0\.1 s"):
        broken(driver, connection, slow, timeout_s=0.1)
    assert not broken(driver, connection, slow, timeout_s=60.0)
    with pytest.raises(CheckNotRun, match=r"leaves .* ends its process\. Raise AssertionError instead"):
        broken(driver, connection, Invariant("leaves", f"{file}:leaves"))


def checker_of(folder: Path) -> tuple[Checker, SqlitePlace]:
    """Return a checker of one query that holds, and its place, whose database it uses first."""
    case = cases_of({"builtin": "bank", "concurrency": 1}, "sql")[0]
    held = Invariant("held", "c.sql:1", "SELECT 1 WHERE 0")
    case = replace(case, spec=replace(case.spec, data=replace(case.spec.data, checks=(held,))))
    place = SqlitePlace(case, folder)
    return Checker(case, place), place


def test_checker_leaves_no_connection_open_between_rounds(tmp_path: Path) -> None:
    checker, place = checker_of(tmp_path)
    with closing(sqlite3.connect(place.paths[0])) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
        assert checker.round(0).broken == []
    # SQLite checkpoints and removes the WAL only when the last connection is closed.
    assert not Path(f"{place.paths[0]}-wal").exists()


@pytest.mark.parametrize("refused", [MAX_FAILED_OPENS - 1, MAX_FAILED_OPENS])
def test_refused_connection_is_retried_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    checker, place = checker_of(tmp_path)
    opened, asked = place.reader, list[None]()

    def reader() -> SqliteReader:
        asked.append(None)
        if len(asked) <= refused:
            raise sqlite3.OperationalError("database is locked")
        return opened()

    monkeypatch.setattr(place, "reader", reader)
    assert [checker.round(0).broken for _ in range(MAX_FAILED_OPENS - 1)] == [None] * (MAX_FAILED_OPENS - 1)
    if refused < MAX_FAILED_OPENS:
        assert checker.round(0).broken == []
    else:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            checker.round(0)
