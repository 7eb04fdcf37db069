"""The parent's half of experiments with verified data."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.proofs import ProvenWork, examined, reading_checks
from sqlstress.engine.protocols import Findings, Outcome
from sqlstress.errors import EnvironmentFailure
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.results import MAX_COUNTEREXAMPLES
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.dry import DryPlace
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.pulses import nothing


class OneTable(ProvenWork):
    """Creates a table; its own check always passes."""

    place: SqlitePlace
    shared = ()

    def create(self, pulse: Pulse) -> None:
        self.place.create_tables(["CREATE TABLE t (a)"], pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        yield from self.sound(pulse)
        yield Check("own", "ok", len(outcomes))


@pytest.fixture
def work(tmp_path: Path) -> OneTable:
    case = Case(buckets=2)
    work = OneTable(case, SqlitePlace(case, tmp_path))
    work.prepare(nothing)
    return work


def test_checks_of_the_place_precede_the_proof(work: OneTable) -> None:
    verdict = work.verify([Outcome(1, False, None)], nothing)
    results = [(check.name, check.status, check.checked) for check in verdict.checks]
    assert results == [("quick_check", "ok", 2), ("schema", "ok", 2), ("own", "ok", 1)]
    assert verdict.seconds > 0
    with closing(sqlite3.connect(work.place.paths[1])) as connection:
        connection.execute("CREATE TABLE u (a)")
    _, schema, _ = work.verify([], nothing).checks
    assert (schema.status, schema.problems) == ("failed", 1)
    work.place.paths[1].write_bytes(b"not a database at all" * 1000)
    integrity, schema, own = work.verify([], nothing).checks
    assert [integrity.status, schema.status, own.status] == ["failed", "failed", "ok"]
    assert schema.counterexamples == ("cannot read the database: file is not a database",)


def test_unverified_data_is_skipped_and_discarded(work: OneTable, tmp_path: Path) -> None:
    work.case = replace(work.case, verify="none")
    (check,) = work.verify([], nothing).checks
    assert (check.name, check.status, check.note) == ("verification", "skipped", "--verify none")
    work.discard()
    assert list(tmp_path.iterdir()) == []


def test_dry_place_creates_nothing_and_skips_the_proof(tmp_path: Path) -> None:
    case = Case(driver="dry")
    work = OneTable(case, DryPlace(case, tmp_path))
    work.prepare(nothing)
    (check,) = work.verify([], nothing).checks
    assert (check.status, check.note) == ("skipped", "the dry driver stores nothing")
    assert list(tmp_path.iterdir()) == []


def outcome(worker: int, findings: Findings | None) -> Outcome:
    return Outcome(worker, died=findings is None, findings=findings)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_findings_of_workers_are_added_up() -> None:
    first = Findings(reads_checked=10, pairs_checked=2)
    second = Findings(reads_checked=5, bad_reads=4, bad_read_examples=["x", "y", "z"], pairs_checked=3)
    checks = by_name(reading_checks([outcome(1, first), outcome(2, None), outcome(3, second)]))
    reads, torn = checks["values read"], checks["torn transactions"]
    assert (reads.status, reads.checked, reads.problems) == ("failed", 15, 4)
    assert reads.counterexamples == ("x", "y", "z")
    assert (torn.status, torn.checked, torn.problems) == ("ok", 5, 0)


def test_bad_reads_fail_the_check_and_first_examples_are_kept() -> None:
    findings = Findings(pairs_checked=9, torn=1, torn_examples=["half of it"])
    torn = by_name(reading_checks([outcome(1, Findings(pairs_checked=1)), outcome(2, findings)]))
    assert torn["torn transactions"].status == "failed"
    assert torn["torn transactions"].counterexamples == ("half of it",)
    many = [outcome(number, Findings(bad_reads=3, bad_read_examples=["a", "b", "c"])) for number in (1, 2, 3)]
    assert len(reading_checks(many)[0].counterexamples) == MAX_COUNTEREXAMPLES


def test_unchecked_reads_are_left_out_or_skipped() -> None:
    assert list(by_name(reading_checks([outcome(1, Findings(reads_checked=1))]))) == ["values read"]
    assert reading_checks([outcome(1, None), outcome(2, None)])[0].status == "skipped"


def test_unreadable_database_fails_the_check_but_an_interruption_does_not() -> None:
    def unreadable() -> Check:
        raise sqlite3.DatabaseError("disk image is malformed")

    check = examined("last write", unreadable)
    assert (check.name, check.status, check.problems) == ("last write", "failed", 1)
    assert check.counterexamples == ("cannot read the database: disk image is malformed",)

    def interrupted() -> Check:
        raise EnvironmentFailure("stop")

    with pytest.raises(EnvironmentFailure):
        examined("last write", interrupted)
