"""Where statements begin and end, and what stands in them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.options.sql_text import POSTGRES
from sqlstress.user_work.statements import place_of, split

TRIGGER = """CREATE TRIGGER t AFTER INSERT ON a BEGIN
  INSERT INTO b SELECT CASE new.x WHEN 1 THEN 'end;' ELSE 'x' END;
  DELETE FROM b WHERE x = ';';
END"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ; ;\n-- nothing;\n/* ; */", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';'; SELECT 2;", ["SELECT ';'", "SELECT 2"]),
        ("SELECT 'it''s;'; SELECT 2", ["SELECT 'it''s;'", "SELECT 2"]),
        ('SELECT ";", `;`, [;] ; SELECT 2', ['SELECT ";", `;`, [;]', "SELECT 2"]),
        ("SELECT 1 -- ;\n; SELECT /* ; */ 2", ["SELECT 1", "SELECT /* ; */ 2"]),
        (f"{TRIGGER}; SELECT 1", [TRIGGER, "SELECT 1"]),
        (f"CREATE TEMP {TRIGGER[7:]};SELECT 1;", [f"CREATE TEMP {TRIGGER[7:]}", "SELECT 1"]),
        ("CREATE TABLE trigger_(x); BEGIN; END;", ["CREATE TABLE trigger_(x)", "BEGIN", "END"]),
        ("SELECT 1 /* never closed ; ", ["SELECT 1"]),
    ],
)
def test_a_text_is_split_where_statements_end(text: str, expected: list[str]) -> None:
    assert [one.text for one in split("x.sql", text)] == expected


@pytest.mark.parametrize(("text", "where"), [("SELECT 'a", "x.sql:1:8"), ('SELECT 1;\n  "a;', "x.sql:2:3")])
def test_a_string_that_is_never_closed_is_told_where_it_is_opened(text: str, where: str) -> None:
    with pytest.raises(UsageError, match=f"^{where}: . is opened here and never closed"):
        list(split("x.sql", text))


@given(st.text("'\";-/*\n ab[`]", max_size=60))
def test_what_sqlite_takes_for_complete_is_split_to_its_end(text: str) -> None:
    """SQLite's own judge of completeness agrees with each statement, however it is quoted."""
    try:
        found = list(split("x.sql", text))
    except UsageError:
        return
    for one in found:
        assert text[one.start :].startswith(one.text)
        if text[one.end - 1] == ";" and one.end > one.start + len(one.text):
            assert sqlite3.complete_statement(text[one.start : one.end])


def test_a_dump_of_a_database_is_taken_apart_as_sqlite_wrote_it() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(f"CREATE TABLE a(x); CREATE TABLE b(x); {TRIGGER};")
        connection.execute("INSERT INTO a VALUES ('a;b''c')")
        dump = list(connection.iterdump())
    assert [f"{one.text};" for one in split("dump.sql", "\n".join(dump))] == dump


def test_words_parameters_and_comments_are_seen() -> None:
    (one,) = split("x.sql", "-- money\nUPDATE a SET x = x + :d WHERE id = $id AND y = ':no' -- :no")
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
def test_what_only_reads_is_told_from_what_writes(sql: str, reads: bool) -> None:
    (one,) = split("x.sql", sql)
    assert one.reads is reads


def test_a_place_counts_from_one() -> None:
    assert str(place_of("a", "x\nyz", 3)) == "a:2:2" and str(place_of("a", "", 0)) == "a:1:1"


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
def test_a_text_for_a_server_is_split_where_it_ends_statements(text: str, expected: list[str]) -> None:
    assert [one.text for one in split("x.sql", text, dialect=POSTGRES)] == expected


@pytest.mark.parametrize(
    ("sql", "begins", "ends"),
    [("START TRANSACTION", True, False), ("ABORT", False, True), ("ROLLBACK TO SAVEPOINT a", False, False)],
)
def test_a_server_begins_and_ends_transactions_in_other_words_too(sql: str, begins: bool, ends: bool) -> None:
    (one,) = split("x.sql", sql, dialect=POSTGRES)
    assert (one.begins, one.ends) == (begins, ends)
