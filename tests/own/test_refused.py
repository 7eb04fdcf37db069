"""What would stay on somebody's server, or is another database's SQL, is refused; nothing else is."""

from __future__ import annotations

import pytest

from sqlstress.errors import UsageError
from sqlstress.options.sql_text import POSTGRES, SQLITE
from sqlstress.user_work.statements import refuse, split

REFUSED = [
    ("BEGIN IMMEDIATE", "BEGIN IMMEDIATE is SQLite's: write BEGIN, and SELECT ... FOR UPDATE"),
    ("PRAGMA user_version", "PRAGMA is SQLite's"),
    ("COPY t FROM stdin", "use INSERT"),
    ("CREATE ROLE me", "CREATE ROLE would stay on the server"),
    ("create extension x", "CREATE EXTENSION would stay"),
    ("DROP SCHEMA theirs CASCADE", "DROP SCHEMA would stay"),
    ("ALTER SYSTEM SET fsync = off", "ALTER SYSTEM would stay"),
    ("CREATE TABLE public.t (x int)", "what another schema holds is not changed"),
    ("CREATE INDEX i ON theirs.t (x)", "what another schema holds"),
    ('DROP TABLE IF EXISTS "a b"."c"', "what another schema holds"),
    ("TRUNCATE t, theirs.u", "what another schema holds"),
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


def tried(sql: str) -> None:
    (one,) = split("x.sql", f"\n {sql};", dialect=POSTGRES)
    refuse("x.sql", f"\n {sql};", one, POSTGRES)


@pytest.mark.parametrize(("sql", "text"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_what_can_not_be_run_at_a_server_is_told_with_its_place(sql: str, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        tried(sql)
    assert str(raised.value).startswith("x.sql:2:2: ") and text in str(raised.value)


@pytest.mark.parametrize("sql", TAKEN)
def test_what_stays_in_our_schema_is_taken(sql: str) -> None:
    tried(sql)


@pytest.mark.parametrize("sql", ["BEGIN IMMEDIATE", "PRAGMA user_version", "DROP TABLE main.t"])
def test_files_are_the_users_own_to_change(sql: str) -> None:
    (one,) = split("x.sql", sql)
    refuse("x.sql", sql, one, SQLITE)
