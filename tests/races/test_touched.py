"""Rows that a statement is about to write, found by a query before it runs."""

from __future__ import annotations

import base64
import os
import random
import secrets
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest

from sqlstress.races.touched import Row, WrittenTable, conditions, is_now, searches_for_any
from sqlstress.races.tracing import RandomValues

SCHEMA = """
CREATE TABLE "a job" (id INTEGER PRIMARY KEY, name TEXT UNIQUE, state TEXT);
INSERT INTO "a job" VALUES (1, 'x', 'new'), (2, 'y', 'new'), (3, 'it''s', 'old');
"""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        yield connection


@pytest.fixture
def job(connection: sqlite3.Connection) -> WrittenTable:
    keys = [frozenset({"id"}), frozenset({"name"})]
    return WrittenTable("a job", keys, lambda sql: connection.execute(sql).fetchall())


def ids(rows: frozenset[Row] | None) -> set[int] | None:
    if rows is None:
        return None
    return {value for row in rows for columns, (value, *_) in row if columns == ("id",)}


@pytest.mark.parametrize(
    ("sql", "touched"),
    [
        ("UPDATE \"a job\" SET state = 'set where id = 3' WHERE id = 1", {1}),
        ("update or ignore [a job] as j set id = 7 where j.id in (1, 3);", {1, 3}),
        ("UPDATE `a job` SET state = (SELECT 1 WHERE 1)", {1, 2, 3}),
        ("WITH o AS (SELECT 3 AS n) UPDATE \"a job\" SET state = '' WHERE id IN (SELECT n FROM o)", {3}),
        ("UPDATE \"a job\" SET state = '' WHERE id = (SELECT 2 LIMIT 1) RETURNING id", {2}),
        ("DELETE FROM \"a job\" WHERE name = 'it''s'", {3}),
        ('DELETE FROM "a job" -- all', {1, 2, 3}),
        ('DELETE FROM "a job" WHERE id = 9', set()),
        ('UPDATE "a job" SET state = o.n FROM (SELECT 1 AS n) AS o WHERE id = 1', None),
    ],
)
def test_write_touches_the_rows_that_its_condition_finds(
    job: WrittenTable, sql: str, touched: set[int] | None
) -> None:
    assert ids(job.changed(sql)) == touched


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SET name = 'x', state = 'old' WHERE id = 1", {"name"}),
        ("SET [name] = replace('x,', ',', ''), \"STATE\" = state || '' WHERE id = 1;", {"name", "state"}),
        (
            "AS j SET state = 'new', name = CASE j.id WHEN 1 THEN 'x' ELSE 'y' END WHERE id < 3",
            {"state", "name"},
        ),
        ("SET state = 'new'", set()),
        ("SET state = 'new' WHERE id = 9", set()),
        ("SET state = NULL WHERE id = 1", set()),
        ("SET (name, state) = ('x', 'new') WHERE id = 1", set()),
        ("SET state = o.n FROM (SELECT 'new' AS n) AS o WHERE id = 1", set()),
    ],
)
def test_columns_set_to_their_old_value_are_recognized(job: WrittenTable, sql: str, kept: set[str]) -> None:
    given = job.assigned_values(f'UPDATE "a job" {sql}')
    assert {column for column, (is_same, _) in given.items() if is_same} == kept


@pytest.mark.parametrize(
    ("moment", "says_so"),
    [
        (time.time, True),
        (lambda: round(time.time()), True),
        (lambda: int(time.time() * 1000), True),
        (lambda: datetime.now().isoformat(), True),
        (lambda: f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}", True),
        (lambda: datetime.now(timezone(timedelta(hours=-3))).isoformat(), True),
        (lambda: time.time() + 2, False),
        (lambda: time.time() - 60, False),
        (lambda: "7", False),
        (lambda: None, False),
    ],
)
def test_current_time_is_recognized_in_a_value(moment: Callable[[], object], says_so: bool) -> None:
    assert is_now(moment()) == says_so


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        ("INSERT INTO \"a job\" VALUES (4, 'z', '')", {(("id",), (4,)), (("name",), ("z",))}),
        ("INSERT OR IGNORE INTO \"a job\" (state, Name) VALUES ('(', 'z')", {(("name",), ("z",))}),
        (
            "INSERT INTO [a job] (name) SELECT 'z' WHERE 1 ON CONFLICT (name) DO NOTHING",
            {(("name",), ("z",))},
        ),
        ("REPLACE INTO \"a job\" (name) VALUES ('x') RETURNING id", set()),
        ("INSERT INTO \"a job\" (name) VALUES ('it''s')", set()),
        ("INSERT INTO \"a job\" (state) VALUES ('new')", None),
        ('INSERT INTO "a job" DEFAULT VALUES', None),
    ],
)
def test_insert_creates_the_rows_with_its_keys_that_do_not_exist(
    job: WrittenTable, sql: str, made: set[object] | None
) -> None:
    inserted = job.inserted(sql)
    assert (None if inserted is None else {name for row in inserted[0] for name in row}) == made


def test_insert_recognizes_existing_rows(job: WrittenTable) -> None:
    inserted = job.inserted("REPLACE INTO \"a job\" (name) VALUES ('x'), ('z')")
    assert inserted
    assert [{name for row in rows for name in row} for rows in inserted] == [
        {(("name",), ("z",))},
        {(("name",), ("x",))},
    ]


def test_rows_beyond_the_limit_are_unknown(connection: sqlite3.Connection, job: WrittenTable) -> None:
    connection.executemany('INSERT INTO "a job" (name) VALUES (?)', [(n,) for n in range(30)])
    assert job.changed("UPDATE \"a job\" SET state = ''") is None
    assert ids(job.with_rowid(20)) == {20}


@pytest.mark.parametrize(
    ("draw", "written"),
    [
        (partial(secrets.token_urlsafe, 32), "{}"),
        (partial(secrets.token_hex, 8), "session:{}"),
        (lambda: secrets.token_hex(20).upper(), "{}"),
        (lambda: str(uuid.uuid4()), "{}"),
        (lambda: uuid.uuid4().hex, "{}"),
        (lambda: uuid.uuid4().bytes.hex(), "{}"),
        (lambda: base64.b32encode(os.urandom(10)).decode(), "{}"),
    ],
)
def test_random_text_is_recognized_in_a_query(draw: Callable[[], str], written: str) -> None:
    original, draws, before = os.urandom, RandomValues(), draw()
    draws.start()
    try:
        after = draw()
    finally:
        draws.stop()
    query = f"SELECT 1 FROM j WHERE n = 1 AND name = '{written}'"
    assert searches_for_any(query.format(after), draws.texts)
    assert not searches_for_any(query.format(before), draws.texts)
    assert os.urandom is random._urandom is original  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sql", "only"),
    [
        ("SELECT * FROM j WHERE name = 'abcd' LIMIT 1", True),
        ("SELECT EXISTS(SELECT 1 FROM j WHERE id=x'ABCD') AS found", True),
        ("SELECT 1 FROM j WHERE (j.`name` = 'abcd' AND ([state] = 'new'));", True),
        ("""SELECT 1 FROM j WHERE ("j"."id" = 7 AND "j"."name" = 's:abcd') ORDER BY 1""", True),
        ("SELECT * FROM j WHERE name = 'a' /* = 'abcd' */", False),
        ("SELECT * FROM j WHERE name = 'a' -- = 'abcd'", False),
        ("SELECT * FROM j WHERE name = 'a' ORDER BY name = 'abcd'", False),
        ("SELECT * FROM j WHERE (name = 'abcd') = 0", False),
        ("SELECT * FROM j WHERE ifnull(name = 'abcd', 1)", False),
        ("SELECT * FROM j WHERE 1 + (name = 'abcd')", False),
        ("SELECT * FROM j WHERE name = 'abcd' OR state = 'new'", False),
        ("SELECT * FROM j WHERE name != 'abcd'", False),
        ("SELECT * FROM j WHERE NOT name = 'abcd'", False),
        ("SELECT * FROM j WHERE state = (SELECT state FROM j WHERE name = 'abcd')", False),
        ("SELECT name = 'abcd' FROM j", False),
    ],
)
def test_query_that_may_match_other_rows_does_not_seek_a_text_alone(sql: str, only: bool) -> None:
    assert searches_for_any(sql, ["abcd"]) == only


def test_condition_is_the_text_after_where() -> None:
    assert {"state", "id"} <= conditions('SELECT name FROM j WHERE "State" = 1 AND id IN (SELECT id FROM o)')
    assert not conditions("SELECT state FROM j")


@pytest.mark.parametrize(
    ("values", "is_twin"),
    [
        ("(bed) VALUES ('a')", True),
        ("(bed, gone) VALUES ('a', NULL)", True),
        ("(bed, gone) VALUES ('a', 2)", False),
        ("(bed) VALUES ('b')", False),
        ("(gone) VALUES (NULL)", False),
    ],
)
def test_row_with_null_in_a_unique_key_may_have_a_twin(
    connection: sqlite3.Connection, values: str, *, is_twin: bool
) -> None:
    connection.executescript(
        "CREATE TABLE stay (bed TEXT, gone INTEGER, UNIQUE (bed, gone)); INSERT INTO stay VALUES ('a', NULL);"
    )
    keys = [frozenset(("bed", "gone"))]
    table = WrittenTable("stay", keys, lambda sql: connection.execute(sql).fetchall())
    assert table.has_null_twin(f"INSERT INTO stay {values}") == is_twin
