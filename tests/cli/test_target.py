"""Targets side by side, by the command line: which cases there are, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, FakeSession
from tests.pages import ROOT

RIGHT, SCHEMA = (ROOT / "examples" / "transfer" / f"{name}.sql" for name in ("right", "schema"))
ELSEWHERE = "--dsn=postgresql://me:s3cr3t@db.example.org/db"
SERVER = "kv --driver=psycopg"
SCRIPT = "sql -b bank --driver=psycopg"
REFUSED = [
    ("kv --target sqlite,lmdb", "--target: 'lmdb' is not one of sqlite, postgres"),
    ("app own.py --target=dry", "--target: 'dry' is not one of sqlite, postgres"),
    ("kv --target postgres --driver apsw", "--driver apsw needs --target sqlite"),
    ("kv --target sqlite,postgres --checkpointer passive", "--checkpointer is not supported by postgres"),
    ("kv --target sqlite,postgres --pinned-reader", "--pinned-reader is not supported by postgres"),
    (f"{SERVER} --journal-mode delete", "--journal-mode is not supported by postgres"),
    (f"{SERVER} --pragma temp_store=memory", "--pragma is not supported by postgres"),
    (f"{SERVER} --busy fair", "--busy is not supported by postgres"),
    (f"{SERVER} --preset classic", "--preset is not supported by postgres"),
    (f"{SERVER} --synchronous extra", "--synchronous extra needs SQLite"),
    (f"{SERVER} --buckets 1001", "at most 1,000"),
    (f"{SERVER} --where", "--where is not available"),
    (f"{SERVER} --keep", "--keep keeps files"),
    (f"{SERVER} --anyway", "Add --dsn"),
    (f"{SERVER} --isolation chaos", "'chaos' is not one of read-committed, repeatable-read, serializable"),
    (f"{SERVER} {ELSEWHERE}", "me@db.example.org:5432/db may be another machine"),
    (f"{SERVER} --dsn postgresql://me:s3cr3t@x@localhost/db", "this is not a connection string"),
    ("kv --isolation serializable", "--isolation needs a server. Add --target postgres"),
    (f"{SCRIPT} --keep", "--keep keeps files"),
    (f"{SCRIPT} --database=app.db", "--database is not supported by postgres"),
    ("sql -b bank --target=sqlite,postgres --database=app.db", "--database is not supported by postgres"),
    (f"{SCRIPT} --target=sqlite", "needs --target"),
    (
        f"{SCRIPT} {RIGHT} --setup={SCHEMA}",
        "right.sql:5:1: BEGIN IMMEDIATE is SQLite's: write BEGIN",
    ),
    (f"{SCRIPT} --setup=theirs.sql", "theirs.sql:1:1: what another schema holds is not changed"),
    ("sql -b bank --dsn=postgresql:///x", "--dsn needs a server. Add --target postgres"),
    ("exec --target=postgres --database=app.db -- true", "--database is not supported by postgres"),
    ("exec --isolation=serializable -- true", "--isolation needs a server. Add --target postgres"),
    (f"app own.py --target=postgres {ELSEWHERE}", "may be another machine"),
    ("app own.py --driver=psycopg", "--driver: your code opens the database itself"),
    ("limit exec --driver=psycopg -- true", "--driver: your code opens the database itself"),
]
"""Of what is refused, a row for each experiment that refuses it by a rule of its own."""


@pytest.mark.parametrize(("words", "told"), REFUSED)
def test_what_a_target_can_not_do_is_refused_in_a_line(cli: Cli, words: str, told: str) -> None:
    pytest.importorskip("psycopg")
    Path("theirs.sql").write_text("CREATE TABLE public.theirs (x int);", encoding="utf-8")
    Path("own.py").write_text("from sqlstress import transaction\n@transaction\ndef t(c): pass\n")
    said = cli(*words.split())
    assert said.code == 2
    assert told in said.lines[0] and "s3cr3t" not in said.err


@pytest.mark.parametrize(
    ("options", "drivers"),
    [
        ("--target sqlite,postgres", ("sqlite3", "psycopg")),
        ("--target postgres,sqlite --driver apsw", ("psycopg", "apsw")),
        ("--target postgres", ("psycopg",)),
        ("--driver psycopg", ("psycopg",)),
        # What means something to one of them is for that one.
        ("--target sqlite,postgres --journal-mode delete", ("sqlite3", "psycopg")),
    ],
)
def test_each_target_has_a_case_at_each_place_driven_by_the_same_loop(
    cli: Cli, session: type[FakeSession], options: str, drivers: tuple[str, ...]
) -> None:
    cli("kv", "-c", "1,2", *options.split())
    assert [(case.concurrency, case.driver) for case in session.cases] == [
        (count, driver) for count in (1, 2) for driver in drivers
    ]
    assert len({case.spec.loop for case in session.cases}) == 1
