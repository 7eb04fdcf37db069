"""Splitting of SQL into statements, and the kinds of statements."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.options.sql_text import POSTGRES, SQLITE, Dialect
from sqlstress.user_work.statements import Position, position_at, split_statements

TRIGGER = """CREATE TRIGGER t AFTER INSERT ON a BEGIN
  INSERT INTO b SELECT CASE new.x WHEN 1 THEN 'end;' ELSE 'x' END;
  DELETE FROM b WHERE x = ';';
END"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ; ;\n-- nothing;\n/* ; */", []),
        ("SELECT ';'; SELECT 2", ["SELECT ';'", "SELECT 2"]),
        ("SELECT 'it''s;'; SELECT 2", ["SELECT 'it''s;'", "SELECT 2"]),
        ('SELECT ";", `;`, [;] ; SELECT 2', ['SELECT ";", `;`, [;]', "SELECT 2"]),
        ("SELECT 1 -- ;\n; SELECT /* ; */ 2", ["SELECT 1", "SELECT /* ; */ 2"]),
        (f"{TRIGGER}; SELECT 1", [TRIGGER, "SELECT 1"]),
        (f"CREATE TEMP {TRIGGER[7:]};SELECT 1;", [f"CREATE TEMP {TRIGGER[7:]}", "SELECT 1"]),
        ("CREATE TABLE trigger_(x); BEGIN; END;", ["CREATE TABLE trigger_(x)", "BEGIN", "END"]),
        ("SELECT 1 /* never closed ; ", ["SELECT 1"]),
    ],
)
def test_text_is_split_at_the_ends_of_statements(text: str, expected: list[str]) -> None:
    assert [statement.text for statement in split_statements("x.sql", text)] == expected


@pytest.mark.parametrize(("text", "where"), [("SELECT 'a", "x.sql:1:8"), ('SELECT 1;\n  "a;', "x.sql:2:3")])
def test_unclosed_string_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(UsageError, match=f"^{where}: . opens here and is never closed"):
        list(split_statements("x.sql", text))


@given(st.text("'\";-/*\n ab[`]", max_size=60))
def test_split_statements_are_complete_for_sqlite(text: str) -> None:
    """SQLite's own check for completeness accepts each statement, with any quotes."""
    try:
        found = list(split_statements("x.sql", text))
    except UsageError:
        return
    for statement in found:
        assert text[statement.start :].startswith(statement.text)
        if text[statement.end - 1] == ";" and statement.end > statement.start + len(statement.text):
            assert sqlite3.complete_statement(text[statement.start : statement.end])


def test_dump_of_a_database_is_split_into_its_statements() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(f"CREATE TABLE a(x); CREATE TABLE b(x); {TRIGGER};")
        connection.execute("INSERT INTO a VALUES ('a;b''c')")
        dump = list(connection.iterdump())
    assert [f"{statement.text};" for statement in split_statements("dump.sql", "\n".join(dump))] == dump


def test_words_parameters_and_comments_are_recognized() -> None:
    (one,) = split_statements(
        "x.sql", "-- money\nUPDATE a SET x = x + :d WHERE id = $id AND y = ':no' -- :no"
    )
    assert one.words[:3] == ("update", "a", "set") and one.comment == "money"
    assert [token.text for token in one.parameters] == [":d", "$id"]
    assert not one.reads


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT 1", True),
        ("with a as (select 1) select * from a", True),
        ("WITH a AS (SELECT 1) DELETE FROM b", False),
        ("WITH a AS (SELECT 1) SELECT replace(b, 1, 2) FROM a", True),
        ("WITH a AS (SELECT 1) REPLACE INTO b SELECT * FROM a", False),
        ("VALUES (1)", True),
        ("REPLACE INTO a VALUES (1)", False),
    ],
)
def test_statement_that_only_reads_is_recognized(sql: str, reads: bool) -> None:
    (one,) = split_statements("x.sql", sql)
    assert one.reads is reads


def test_position_counts_from_one() -> None:
    assert str(position_at("a", "x\nyz", 3)) == "a:2:2" and str(position_at("a", "", 0)) == "a:1:1"


FUNCTION = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN a; RETURN NEW; END $$"
ATOMIC = "CREATE FUNCTION g() RETURNS int BEGIN ATOMIC SELECT CASE 1 WHEN 1 THEN 2 END; SELECT 3; END"
FIRES = "CREATE TRIGGER t BEFORE UPDATE ON a FOR EACH ROW EXECUTE FUNCTION f()"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{FUNCTION}; {FIRES}; SELECT 1;", [FUNCTION, FIRES, "SELECT 1"]),
        (f"{ATOMIC}; SELECT 1", [ATOMIC, "SELECT 1"]),
        ("CREATE TABLE atomic (atomic int); SELECT 1", ["CREATE TABLE atomic (atomic int)", "SELECT 1"]),
        (r"SELECT E'\';', '\'; SELECT 2", [r"SELECT E'\';', '\'", "SELECT 2"]),
        ("SELECT /* ; /* ; */ ; */ 1; SELECT 2", ["SELECT /* ; /* ; */ ; */ 1", "SELECT 2"]),
        ("SELECT a[1]; SELECT `b`;", ["SELECT a[1]", "SELECT `b`"]),
    ],
)
def test_text_for_a_server_is_split_by_the_postgres_dialect(text: str, expected: list[str]) -> None:
    assert [statement.text for statement in split_statements("x.sql", text, dialect=POSTGRES)] == expected


@pytest.mark.parametrize(
    ("sql", "begins", "ends"),
    [("START TRANSACTION", True, False), ("ABORT", False, True), ("ROLLBACK TO SAVEPOINT a", False, False)],
)
def test_begin_and_end_words_of_postgres_are_recognized(sql: str, begins: bool, ends: bool) -> None:
    (one,) = split_statements("x.sql", sql, dialect=POSTGRES)
    assert (one.begins, one.ends) == (begins, ends)


# Statements that would remain on the user's server, or are SQL of another database, are refused; all others
# are not.


REFUSED = [
    ("BEGIN IMMEDIATE", "BEGIN IMMEDIATE is SQLite's: write BEGIN, and SELECT ... FOR UPDATE"),
    ("PRAGMA user_version", "PRAGMA is SQLite's"),
    ("COPY t FROM stdin", "use INSERT"),
    ("CREATE ROLE me", "CREATE ROLE would stay on the server"),
    ("create extension x", "CREATE EXTENSION would stay"),
    ("CREATE TABLE public.t (x int)", "what another schema holds is not changed"),
    ('DROP TABLE IF EXISTS "a b"."c"', "what another schema holds"),
    ("INSERT INTO theirs.t VALUES (1)", "what another schema holds"),
    ("UPDATE ONLY theirs . t SET x = 1", "what another schema holds"),
    ("DELETE FROM theirs.t", "what another schema holds"),
    ("SET search_path = public", "it lets names be looked for elsewhere"),
    ("SET LOCAL search_path TO public", "looked for elsewhere"),
    ("SET SCHEMA 'public'", "looked for elsewhere"),
    ("RESET ALL", "looked for elsewhere"),
    ("DISCARD ALL", "looked for elsewhere"),
    ("SELECT pg_catalog.set_config('search_path', '', false)", "looked for elsewhere"),
]
TAKEN = [
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "CREATE TABLE t (x pg_catalog.int4 DEFAULT 1.5)",
    "CREATE TABLE t AS SELECT a.x FROM a",
    "CREATE VIEW v AS SELECT a.x FROM public.a",
    "CREATE TABLE role (schema text)",
    "CREATE FUNCTION f() RETURNS int SET search_path = x LANGUAGE sql AS $$ SELECT 1 $$",
    "UPDATE t SET x = u.x FROM u WHERE t.i = u.i",
    "INSERT INTO t SELECT u.x FROM u",
    "DELETE FROM t USING u WHERE t.i = u.i",
    "SET LOCAL statement_timeout = 5",
    "SELECT * FROM theirs.t",
    "COMMENT ON TABLE t IS 'a.b'",
]


def check_statement(sql: str, dialect: Dialect = POSTGRES) -> None:
    (one,) = split_statements("x.sql", f"\n {sql};", dialect=dialect)
    assert one.place == Position("x.sql", 2, 2)


@pytest.mark.parametrize(("sql", "text"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_statement_unfit_for_a_server_is_refused_with_its_place(sql: str, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_statement(sql)
    assert str(raised.value).startswith("x.sql:2:2: ") and text in str(raised.value)


def test_statement_within_our_schema_is_accepted_and_sqlite_files_are_free() -> None:
    for sql in TAKEN:
        check_statement(sql)
    for sql in ("BEGIN IMMEDIATE", "PRAGMA user_version", "DROP TABLE main.t"):
        check_statement(sql, SQLITE)
