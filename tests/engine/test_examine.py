"""The checks that all key-value verdicts have in common."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.engine.examine import examined, integrity_check, reading_checks, schema_check, unverified
from sqlstress.engine.protocols import Findings, Outcome
from sqlstress.errors import EnvironmentFailure
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.problems import EXAMPLES
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.integrity import schema
from tests.pulses import Pulses, nothing


def outcome(worker: int, findings: Findings | None) -> Outcome:
    return Outcome(worker, died=findings is None, findings=findings)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_what_is_not_verified_says_why() -> None:
    (dry,) = unverified(Case(driver="dry")).checks
    (asked,) = unverified(Case(verify="none")).checks
    assert (dry.status, dry.note) == ("skipped", "the dry driver stores nothing")
    assert (asked.status, asked.note) == ("skipped", "--verify none")


def test_what_the_workers_found_is_added_up() -> None:
    one = Findings(reads_checked=10, pairs_checked=2)
    other = Findings(reads_checked=5, bad_reads=4, bad_read_examples=["x", "y", "z"], pairs_checked=3)
    checks = by_name(reading_checks([outcome(1, one), outcome(2, None), outcome(3, other)]))
    reads, torn = checks["values read"], checks["torn transactions"]
    assert (reads.status, reads.checked, reads.problems) == ("failed", 15, 4)
    assert reads.counterexamples == ("x", "y", "z")
    assert (torn.status, torn.checked, torn.problems) == ("ok", 5, 0)


def test_a_single_torn_transaction_fails_the_check() -> None:
    found = Findings(pairs_checked=9, torn=1, torn_examples=["half of it"])
    torn = by_name(reading_checks([outcome(1, Findings(pairs_checked=1)), outcome(2, found)]))
    assert torn["torn transactions"].status == "failed"
    assert torn["torn transactions"].counterexamples == ("half of it",)


def test_only_the_first_examples_are_told() -> None:
    found = [
        outcome(worker, Findings(bad_reads=3, bad_read_examples=["a", "b", "c"])) for worker in (1, 2, 3)
    ]
    assert len(reading_checks(found)[0].counterexamples) == EXAMPLES


def test_without_pairs_nothing_is_said_of_torn_transactions() -> None:
    assert list(by_name(reading_checks([outcome(1, Findings(reads_checked=1))]))) == ["values read"]


def test_when_every_worker_died_nothing_is_known_of_what_they_read() -> None:
    assert reading_checks([outcome(1, None), outcome(2, None)])[0].status == "skipped"


@pytest.mark.parametrize(("verify", "name"), [("quick", "quick_check"), ("full", "integrity_check")])
def test_every_sound_file_is_looked_at(tmp_path: Path, verify: str, name: str) -> None:
    case = Case(buckets=3, verify=verify)
    for path in files.paths(case, tmp_path):
        files.create_empty(case, path)
    pulses = Pulses()
    check = integrity_check(case, tmp_path, pulses)
    assert (check.name, check.status, check.checked) == (name, "ok", 3)
    assert pulses.count >= 3


def test_a_missing_and_a_foreign_file_are_told(tmp_path: Path) -> None:
    case = Case(buckets=3)
    first, second, third = files.paths(case, tmp_path)
    files.create_empty(case, first)
    third.write_bytes(b"not a database at all" * 1000)
    check = integrity_check(case, tmp_path, nothing)
    assert (check.status, check.checked, check.problems) == ("failed", 3, 4)
    assert check.counterexamples == (
        "kv_1.db: the file is gone",
        "kv_2.db: file is not a database",
        "kv_2.db: its schema can't be read",
        "kv_2.db: it has no header of SQLite's",
    )
    assert not second.exists()


def test_a_definition_that_was_changed_is_told_with_what_it_was(tmp_path: Path) -> None:
    case = Case(buckets=2)
    first, second = files.paths(case, tmp_path)
    for path in (first, second):
        files.create_empty(case, path)
    created = schema(case, first)
    assert schema_check(case, tmp_path, created, nothing).status == "ok"
    with closing(sqlite3.connect(second)) as connection, connection:
        connection.execute("ALTER TABLE kv RENAME COLUMN value TO worth")
        connection.execute("CREATE INDEX more ON kv (worth)")
    check = schema_check(case, tmp_path, created, nothing)
    lacks, changed, added = check.counterexamples
    assert lacks.startswith("the schema of kv_1.db lacks definition 1, the table kv of kv: ")
    assert changed.startswith("the schema of kv_1.db holds definition 1, the table kv of kv: ")
    assert "the index more of kv" in added


def test_what_only_integrity_check_finds_needs_it(tmp_path: Path) -> None:
    """An index without an entry: quick_check does not compare indices with their tables."""
    path = files.paths(Case(), tmp_path)[0]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        connection.execute("CREATE INDEX i ON t (a)")
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute("UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (a + 5)' WHERE name = 'i'")
    assert integrity_check(Case(verify="quick"), tmp_path, nothing).status == "ok"
    assert integrity_check(Case(verify="full"), tmp_path, nothing).status == "failed"


def test_a_check_that_cant_read_the_database_has_failed() -> None:
    def unreadable() -> Check:
        raise sqlite3.DatabaseError("disk image is malformed")

    check = examined("last write", unreadable)
    assert (check.name, check.status, check.problems) == ("last write", "failed", 1)
    assert check.counterexamples == ("the database can't be read: disk image is malformed",)


def test_an_interruption_is_not_taken_for_an_unreadable_database() -> None:
    def interrupted() -> Check:
        raise EnvironmentFailure("stop")

    with pytest.raises(EnvironmentFailure):
        examined("last write", interrupted)
