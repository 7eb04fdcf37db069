"""The checks that verdicts have in common."""

from __future__ import annotations

import sqlite3

import pytest

from sqlstress.engine.proofs import examined, reading_checks
from sqlstress.engine.protocols import Findings, Outcome
from sqlstress.errors import EnvironmentFailure
from sqlstress.report import Check
from sqlstress.report.results import EXAMPLES


def outcome(worker: int, findings: Findings | None) -> Outcome:
    return Outcome(worker, died=findings is None, findings=findings)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


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
