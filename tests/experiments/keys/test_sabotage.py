"""The file is broken on purpose: the verdict says so, with an example."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.ordered import OperationLedger
from sqlstress.engine.pool import Pool, WorkerExit
from sqlstress.engine.worker import SLOT_WORDS
from sqlstress.experiments.classics.keys_worker import picked_by, users_of
from sqlstress.experiments.classics.spec import Picks
from sqlstress.report.case import Settings
from sqlstress.targets.sqlite import files
from tests.experiments.keys.cases import case_of
from tests.experiments.measured import Measured, measure, rejected, statuses, wait_for


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(case_of("id-rowid", "uuid7"), tmp_path_factory.mktemp("original"))


@pytest.fixture
def measured(original: Measured) -> Iterator[Measured]:
    """Measured trial shared by all tests; its file is restored after each test."""
    with closing(sqlite3.connect(original.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = original.path.read_bytes()
    yield original
    files.remove(files.paths(original.case, original.path.parent))
    original.path.write_bytes(before)


def test_pick_of_a_missing_user_is_found(measured: Measured) -> None:
    measured.execute("UPDATE picks SET user = x'00' WHERE rowid = 3")
    verdict = measured.verdict()
    assert "which do not both exist" in rejected(verdict, "picks").counterexamples[0]
    assert rejected(verdict, "foreign keys").counterexamples == (
        "row 3 of picks refers to a row of users that is not there",
    )


def test_dangling_foreign_key_is_found(measured: Measured) -> None:
    (item,) = measured.rows("SELECT item FROM picks WHERE rowid = 5")[0]
    measured.execute("DELETE FROM items WHERE id = ?", item)
    check = rejected(measured.verdict(), "foreign keys")
    assert check.problems == len(measured.rows("SELECT 1 FROM picks WHERE item = ?", item))


def test_pick_with_another_value_in_a_default_column_is_found(measured: Measured) -> None:
    measured.execute("UPDATE picks SET done = 1 WHERE rowid = 3")
    check = rejected(measured.verdict(), "picks", "should not be there", "is gone")
    assert check.problems == 2


def test_an_id_out_of_order_is_found(measured: Measured) -> None:
    measured.execute("UPDATE picks SET id = zeroblob(16) WHERE rowid = 40")
    assert "is less" in rejected(measured.verdict(), "identifiers").counterexamples[0]


def test_rows_that_only_an_index_still_has_are_missed(tmp_path: Path) -> None:
    done = measure(case_of("pair-rowid", "ulid"), tmp_path)
    with closing(sqlite3.connect(done.path)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("CREATE TABLE emptiness (user, item)")
        connection.execute("PRAGMA writable_schema=on")
        connection.execute(
            "UPDATE sqlite_schema SET rootpage = "
            "(SELECT rootpage FROM sqlite_schema WHERE name = 'emptiness') WHERE name = 'picks'"
        )
    expected = sum(len(picked_by(done.case, user)) for user in range(30))
    assert rejected(done.verdict(), "picks").problems == expected


@pytest.fixture
def killed(measured: Measured) -> Measured:
    """Measured trial, changed as if worker 1 had been killed before its last transaction was acknowledged."""
    ended = [WorkerExit(1, reason="was killed"), measured.ended[1]]
    users = users_of(measured.case, 1)
    OperationLedger(measured.work.shared[0], 1).announce(len(users) - 1, 1)
    return replace(measured, ended=ended)


def rows_of(killed: Measured, user: int) -> tuple[object]:
    """Return the id of a user, whose picks are to be changed."""
    (found,) = killed.rows("SELECT id FROM users WHERE name = ?", f"user number {user:06}")
    return tuple(found)


def test_killed_workers_last_transaction_may_be_complete_or_absent(killed: Measured) -> None:
    assert set(statuses(killed.verdict()).values()) == {"ok"}
    last = rows_of(killed, users_of(killed.case, 1)[-1])
    killed.execute("DELETE FROM picks WHERE user = ?", *last)
    assert set(statuses(killed.verdict()).values()) == {"ok"}


def test_killed_workers_last_transaction_is_rejected_if_partial(killed: Measured) -> None:
    last = rows_of(killed, users_of(killed.case, 1)[-1])
    killed.execute("DELETE FROM picks WHERE rowid = (SELECT max(rowid) FROM picks WHERE user = ?)", *last)
    rejected(killed.verdict(), "picks", "was not acknowledged to worker 1")


def test_acknowledged_picks_of_a_killed_worker_must_exist(killed: Measured) -> None:
    before = users_of(killed.case, 1)[-2]
    killed.execute("DELETE FROM picks WHERE user = ?", *rows_of(killed, before))
    assert rejected(killed.verdict(), "picks").problems == len(picked_by(killed.case, before))


@pytest.mark.thorough
def test_killed_workers_keep_acknowledged_picks_and_atomic_transactions(
    tmp_path: Path,
) -> None:
    load = Picks("id-rowid", "ulid-monotonic", users=20_000, picks=10, items=60)
    case = case_of("", "", spec=load, settings=Settings(synchronous="off"))

    def kill(pool: Pool) -> None:
        wait_for(lambda: min(pool._words[SLOT_WORDS::SLOT_WORDS]) >= 100)
        for process in pool._processes:
            process.kill()

    done = measure(case, tmp_path, kill)
    assert [outcome.worker for outcome in done.outcomes if outcome.died] == [1, 2]
    verdict = done.verdict()
    assert verdict.status == "ok", verdict.counterexamples
    count = next(check.checked for check in verdict.checks if check.name == "picks")
    # Each of the two has done a hundred users and more, with some ten picks each.
    assert 1000 < count < 200_000
    # The two unfinished transactions are there fully or not at all; all other rows must be in the file.
    done.execute("DELETE FROM picks WHERE rowid = (SELECT max(rowid) FROM picks)")
    rejected(done.verdict(), "picks")
