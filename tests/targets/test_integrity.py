"""Checks by SQLite itself: integrity of the files, and an unchanged schema."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.proofs import examined
from sqlstress.errors import EnvironmentFailure
from sqlstress.report.case import Case
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.pulses import Pulses, nothing


def place_with_tables(folder: Path, buckets: int) -> SqlitePlace:
    """Return a place with an empty key-value table in every bucket."""
    place = SqlitePlace(Case(buckets=buckets), folder)
    place.table("int", 8, counters=0).create(nothing)
    return place


@pytest.mark.parametrize(("verify", "name"), [("quick", "quick_check"), ("full", "integrity_check")])
def test_integrity_check_covers_every_file(tmp_path: Path, verify: str, name: str) -> None:
    place = place_with_tables(tmp_path, buckets=3)
    pulses = Pulses()
    check = place.integrity(verify, pulses)
    assert (check.name, check.status, check.checked) == (name, "ok", 3)
    assert pulses.count >= 3


def test_missing_and_foreign_files_fail_the_check(tmp_path: Path) -> None:
    place = place_with_tables(tmp_path, buckets=3)
    _, second, third = place.paths
    second.unlink()
    third.write_bytes(b"not a database at all" * 1000)
    check = place.integrity("quick", nothing)
    assert (check.status, check.checked, check.problems) == ("failed", 3, 2)
    assert check.counterexamples == ("kv_1.db: the file is gone", "kv_2.db: file is not a database")
    assert not second.exists()


def test_file_that_stays_locked_is_an_error_not_a_failure(tmp_path: Path) -> None:
    place = place_with_tables(tmp_path, buckets=2)
    locked = SqlitePlace(Case(buckets=2, settings=replace(place.case.settings, busy_timeout_ms=1)), tmp_path)
    with closing(sqlite3.connect(place.paths[1], isolation_level=None)) as stranger:
        stranger.execute("PRAGMA locking_mode=exclusive")
        stranger.execute("BEGIN EXCLUSIVE")
        with pytest.raises(EnvironmentFailure, match="is locked by another program"):
            locked.integrity("quick", nothing)
        with pytest.raises(EnvironmentFailure, match="is locked by another program"):
            examined("schema", lambda: locked.redefined(place.schema(), nothing))
    assert locked.integrity("quick", nothing).status == "ok"


def test_changed_definition_is_reported_with_the_old_one(tmp_path: Path) -> None:
    place = place_with_tables(tmp_path, buckets=2)
    before = place.schema()
    assert place.redefined(before, nothing).status == "ok"
    _, second = place.paths
    with closing(sqlite3.connect(second)) as connection, connection:
        connection.execute("ALTER TABLE kv RENAME COLUMN value TO worth")
        connection.execute("CREATE INDEX more ON kv (worth)")
    check = place.redefined(before, nothing)
    lacks, changed, added = check.counterexamples
    assert lacks.startswith("the schema of kv_1.db lacks definition 1, the table kv of kv: ")
    assert changed.startswith("the schema of kv_1.db holds definition 1, the table kv of kv: ")
    assert "the index more of kv" in added


def test_index_without_an_entry_needs_a_full_check(tmp_path: Path) -> None:
    """An index without an entry: quick_check does not compare indices with their tables."""
    place = SqlitePlace(Case(), tmp_path)
    (path,) = place.paths
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        connection.execute("CREATE INDEX i ON t (a)")
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute("UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (a + 5)' WHERE name = 'i'")
    assert place.integrity("quick", nothing).status == "ok"
    assert place.integrity("full", nothing).status == "failed"
