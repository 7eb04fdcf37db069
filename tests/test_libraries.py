"""docs/locked.md says where Python's libraries have their settings: each of them is tried here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pages import ROOT
from tests.rows import mostly_thorough

PAGE = ROOT / "docs" / "locked.md"
ASK = """
import json, sqlite3, sys
file = sys.argv[1]
def others_write():
    other = sqlite3.connect(file, timeout=0, isolation_level=None)
    try:
        other.execute("INSERT INTO t VALUES (1)")
        return True
    except sqlite3.OperationalError:
        return False
    finally:
        other.close()
def asked(execute):
    return [execute("PRAGMA busy_timeout"), execute("PRAGMA journal_mode")]
with sqlite3.connect(file) as made:
    made.execute("CREATE TABLE t (x)")
made.close()
"""
PYTHONS = """
plain = sqlite3.connect(file)
before = asked(lambda sql: plain.execute(sql).fetchone()[0])
plain.execute("BEGIN")
deferred = others_write()
plain.rollback()
own = sqlite3.connect(file, timeout=10, isolation_level=None)
own.execute("PRAGMA journal_mode=WAL")
own.execute("BEGIN IMMEDIATE")
immediate = others_write()
own.rollback()
after = asked(lambda sql: own.execute(sql).fetchone()[0])
"""
DJANGO = """
import django
from django.conf import settings
options = {"timeout": 10, "transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"}
engine = {"ENGINE": "django.db.backends.sqlite3", "NAME": file}
settings.configure(DATABASES={"default": engine, "own": {**engine, "OPTIONS": options}})
django.setup()
from django.db import connections, transaction
def first(name):
    def execute(sql):
        with connections[name].cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0]
    return execute
before = asked(first("default"))
with transaction.atomic():
    deferred = others_write()
after = asked(first("own"))
with transaction.atomic(using="own"):
    immediate = others_write()
"""
SQLALCHEMY = """
import sqlalchemy
plain = sqlalchemy.create_engine(f"sqlite:///{file}")
with plain.begin() as connection:
    before = asked(lambda sql: connection.exec_driver_sql(sql).scalar())
    deferred = others_write()
own = sqlalchemy.create_engine(f"sqlite:///{file}", connect_args={"timeout": 10})
@sqlalchemy.event.listens_for(own, "connect")
def connect(connection, _):
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
@sqlalchemy.event.listens_for(own, "begin")
def begin(connection):
    connection.exec_driver_sql("BEGIN IMMEDIATE")
with own.begin() as connection:
    immediate = others_write()
    after = asked(lambda sql: connection.exec_driver_sql(sql).scalar())
"""
PEEWEE = """
import peewee
plain = peewee.SqliteDatabase(file)
before = asked(lambda sql: plain.execute_sql(sql).fetchone()[0])
with plain.atomic():
    deferred = others_write()
plain.close()
own = peewee.SqliteDatabase(file, timeout=10, pragmas={"journal_mode": "wal"})
with own.atomic("IMMEDIATE"):
    immediate = others_write()
after = asked(lambda sql: own.execute_sql(sql).fetchone()[0])
"""
TRIED = {"sqlite3": PYTHONS, "django": DJANGO, "sqlalchemy": SQLALCHEMY, "peewee": PEEWEE}
SETTINGS = {
    "sqlite3": ("timeout=10", "isolation_level=None", "PRAGMA journal_mode=WAL"),
    "django": ('"timeout": 10', '"transaction_mode": "IMMEDIATE"', "PRAGMA journal_mode=WAL;"),
    "sqlalchemy": ("isolation_level = None", "BEGIN IMMEDIATE", '"timeout": 10'),
    "peewee": ("timeout=10", 'atomic("IMMEDIATE")', 'pragmas={"journal_mode": "wal"}'),
}


@pytest.mark.parametrize("library", mostly_thorough(TRIED, ["sqlite3", "sqlalchemy"]))
def test_library_settings_have_the_documented_place_and_effect(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    tell = "print(json.dumps([before, deferred, after, immediate]))"
    done = subprocess.run(
        [sys.executable, "-c", ASK + TRIED[library] + tell, str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    found: Any = json.loads(done.stdout)
    assert found == [[5000, "delete"], True, [10_000, "wal"], False]


@pytest.mark.parametrize("library", TRIED)
def test_tried_settings_are_in_the_table(library: str) -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    (row,) = (
        line for line in rows if line.lower().removeprefix("| python's ").lstrip("| ").startswith(library)
    )
    for setting in SETTINGS[library]:
        assert setting in TRIED[library], setting
        assert setting in row, setting
