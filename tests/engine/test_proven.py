"""What the parents' halves have in common that prove what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.proofs import ProvenWork
from sqlstress.engine.protocols import Outcome
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.dry.store import DryPlace
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.pulses import nothing


class OneTable(ProvenWork):
    """Creates a table, and finds it in order."""

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


def test_what_the_place_says_of_itself_stands_beside_the_proof(work: OneTable) -> None:
    verdict = work.verify([Outcome(1, False, None)], nothing)
    found = [(check.name, check.status, check.checked) for check in verdict.checks]
    assert found == [("quick_check", "ok", 2), ("schema", "ok", 2), ("own", "ok", 1)]
    assert verdict.seconds > 0


def test_what_was_defined_besides_since_it_was_prepared_is_told(work: OneTable) -> None:
    with closing(sqlite3.connect(work.place.paths[1])) as connection:
        connection.execute("CREATE TABLE u (a)")
    _, schema, _ = work.verify([], nothing).checks
    assert (schema.status, schema.problems) == ("failed", 1)


def test_a_schema_that_cannot_be_read_has_failed(work: OneTable) -> None:
    work.place.paths[1].write_bytes(b"not a database at all" * 1000)
    integrity, schema, own = work.verify([], nothing).checks
    assert [integrity.status, schema.status, own.status] == ["failed", "failed", "ok"]
    assert schema.counterexamples == ("the database can't be read: file is not a database",)


def test_nothing_is_looked_at_that_is_not_to_be_verified(work: OneTable) -> None:
    work.case = replace(work.case, verify="none")
    (check,) = work.verify([], nothing).checks
    assert (check.name, check.status, check.note) == ("verification", "skipped", "--verify none")


def test_where_nothing_is_stored_nothing_is_created_and_nothing_proven(tmp_path: Path) -> None:
    case = Case(driver="dry")
    work = OneTable(case, DryPlace(case, tmp_path))
    work.prepare(nothing)
    (check,) = work.verify([], nothing).checks
    assert (check.status, check.note) == ("skipped", "the dry driver stores nothing")
    assert list(tmp_path.iterdir()) == []


def test_what_was_created_is_discarded(work: OneTable, tmp_path: Path) -> None:
    work.discard()
    assert list(tmp_path.iterdir()) == []
