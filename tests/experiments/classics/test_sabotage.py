"""The data is broken on purpose, after a trial or during it: the verdict says so, with an example."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.ordered import OperationLedger
from sqlstress.engine.pool import Pool, WorkerExit
from sqlstress.engine.protocols import TIMEOUT, Outcome
from sqlstress.engine.summary import outcomes
from sqlstress.engine.trial import plan_window
from sqlstress.engine.worker import SLOT_WORDS
from sqlstress.experiments.classics.spec import Picks
from sqlstress.experiments.classics.worker import METHODS_TABLES, PATH, picked_by, users_of
from sqlstress.report import Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.targets import open_place
from sqlstress.targets.sqlite import files
from tests.experiments.classics.cases import (
    Ran,
    cell,
    cycles_case,
    keys_case,
    prepare_cell,
    run,
    values,
    work_as,
)
from tests.experiments.measured import SALT, Measured, measure, rejected, statuses, wait_for
from tests.halves import open_work
from tests.pulses import nothing

# Methods.


INSERT = cell("insert", "JSON", 40)
ALLOCATE = cell("allocate", "1b1", 12)
QUERY = cell("query", "JSON", 36)
UNCHECKED = METHODS_TABLES[2].replace(", CHECK (a_id < b_id)", "")


@pytest.mark.parametrize(
    ("case", "sql", "check", "because"),
    [
        (
            INSERT,
            f"DELETE FROM sample WHERE path = '{PATH.format(25)}'",
            "samples",
            f"{PATH.format(25)}'), which was acknowledged, is gone",
        ),
        (INSERT, "INSERT INTO result VALUES (1, 2, -1)", "results", "(1, 2, -1.0) should not be there"),
        (
            ALLOCATE,
            "INSERT INTO result VALUES (3, 13, -1)",
            "foreign keys",
            "of result refers to a row of sample",
        ),
        (ALLOCATE, "DELETE FROM sample WHERE id = 12", "foreign keys", "of result refers to a row of sample"),
        (ALLOCATE, "UPDATE sample SET id = 99 WHERE id = 12", "samples", f"(99, '{PATH.format(11)}') should"),
        (QUERY, "UPDATE result SET val = 0.25 WHERE a_id = 3 AND b_id = 7", "results", "(3, 7, 0.25) should"),
    ],
)
def test_rows_changed_after_the_work_are_named(
    case: Case, sql: str, check: str, because: str, tmp_path: Path
) -> None:
    ran = run(case, tmp_path)
    ran.execute(sql)
    rejected(ran.verdict(), check, because)


def test_timed_out_cell_has_no_unacknowledged_row(tmp_path: Path) -> None:
    ran = run(cell("insert", "1b1", 300_000, timeout_s=0.02), tmp_path)
    assert (ran.outcome, ran.verdict().status) == (TIMEOUT, "ok")
    (written,) = ran.rows("SELECT count(*) FROM sample")[0]
    ran.execute(f"INSERT INTO sample (path) VALUES ('{PATH.format(written)}')")
    rejected(ran.verdict(), "samples", f"{PATH.format(written)}') should not be there")


@pytest.mark.parametrize(
    ("case", "statements", "check", "because"),
    [
        (
            ALLOCATE,
            (
                "CREATE TABLE kept AS SELECT * FROM result",
                "DROP TABLE result",
                UNCHECKED.replace('PRIMARY KEY ("a_id", "b_id"), ', ""),
                "INSERT INTO result SELECT * FROM kept",
                "INSERT INTO result VALUES (2, 3, -1), (7, 3, -1)",
            ),
            "results",
            ("(2, 3, -1.0) is there twice", "(7, 3, -1.0) should not be there"),
        ),
        (
            INSERT,
            ("DROP INDEX sample_path", f"INSERT INTO sample (path) VALUES ('{PATH.format(7)}')"),
            "samples",
            (f"(41, '{PATH.format(7)}') should not be there",),
        ),
        (INSERT, ("DROP TABLE result",), "results", ("cannot read the database: no such table",)),
    ],
    ids=["a pair the wrong way round, or twice", "a path twice", "a table gone"],
)
def test_rows_that_violate_the_schema_are_named(
    case: Case, statements: tuple[str, ...], check: str, because: tuple[str, ...], tmp_path: Path
) -> None:
    ran = run(case, tmp_path)
    with closing(sqlite3.connect(ran.path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    rejected(ran.verdict(), check, *because)


@pytest.mark.parametrize("name", ["1b1", "BLK", "JSON", "SPC"])
@pytest.mark.parametrize("driver", ["sqlite3", "peewee"])
def test_wrong_answer_is_caught_by_the_worker(name: str, driver: str, tmp_path: Path) -> None:
    ran = prepare_cell(cell("query", name, 36, driver=driver), tmp_path)
    ran.execute("UPDATE result SET val = val + 1 WHERE a_id % 2 = 0")
    ran.execute("DELETE FROM result WHERE a_id % 5 = 1")
    work_as(ran, 1)
    rejected(ran.verdict(), "values read", "the answer lacks the result")


def test_verify_none_checks_no_data(tmp_path: Path) -> None:
    ran = prepare_cell(cell("query", "JSON", 36, verify="none"), tmp_path)
    ran.execute("DELETE FROM result")
    work_as(ran, 1)
    assert ran.verdict().status == "skipped"
    assert ran.findings[0].reads_checked == 0


def killed_cell(case: Case, folder: Path, steps: int) -> tuple[Ran, Verdict]:
    """Return a cell whose workers were killed during their work, after at least `steps` steps."""
    work = open_work(case, folder, SALT, {})
    work.prepare(nothing)
    with Pool(case, open_place(case, folder), SALT, work.shared) as pool:
        pool.start(nothing)
        pool.call()
        assert pool.wait_ready(60, nothing) == []
        pool.go(plan_window(case, time.perf_counter_ns(), 0.1))
        wait_for(lambda: pool.done_so_far() >= steps)
        for process in pool._processes:
            process.kill()
        found = outcomes(pool.gather(60, nothing))
    assert [outcome.died for outcome in found] == [True] * case.concurrency
    return Ran(case, folder, work), work.verify(found, nothing)


ENDLESS = 1_000_000
"""More rows than a worker inserts before it is killed_cell."""


@pytest.mark.thorough
@pytest.mark.parametrize("driver", ["sqlite3", "peewee"])
def test_acknowledged_rows_of_killed_workers_count(driver: str, tmp_path: Path) -> None:
    case = cell("insert", "1b1", ENDLESS, driver=driver)
    ran, verdict = killed_cell(case, tmp_path, 20)
    assert verdict.status == "ok", verdict
    ran.execute("DELETE FROM sample WHERE path = '/dataset/000010.mat'")
    again = ran.work.verify([Outcome(1, True, None)], nothing)
    rejected(again, "samples", "which was acknowledged, is gone")


@pytest.mark.thorough
def test_killed_workers_transaction_is_complete_or_absent(tmp_path: Path) -> None:
    case = cell("insert", "1b1", ENDLESS, transaction=True)
    ran, verdict = killed_cell(case, tmp_path, 20)
    assert verdict.status == "ok", verdict
    ran.execute("INSERT INTO sample (path) VALUES ('/dataset/000000.mat')")
    again = ran.work.verify([Outcome(1, True, None)], nothing)
    rejected(again, "samples", "/dataset/000000.mat') should not be there")


# Keys.


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(keys_case("id-rowid", "uuid7"), tmp_path_factory.mktemp("original"))


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


def test_id_out_of_order_is_found(measured: Measured) -> None:
    measured.execute("UPDATE picks SET id = zeroblob(16) WHERE rowid = 40")
    assert "is less" in rejected(measured.verdict(), "identifiers").counterexamples[0]


def test_rows_that_only_an_index_still_has_are_missed(tmp_path: Path) -> None:
    done = measure(keys_case("pair-rowid", "ulid"), tmp_path)
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
def killed_keys(measured: Measured) -> Iterator[Measured]:
    """Measured trial, changed as if worker 1 had been killed before its last transaction was acknowledged."""
    ended = [WorkerExit(1, reason="was killed"), measured.ended[1]]
    users, (words,) = users_of(measured.case, 1), measured.work.shared
    before = words[:]
    OperationLedger(words, 1).announce(len(users) - 1, 1)
    yield replace(measured, ended=ended)
    words[:] = before


def rows_of(killed_keys: Measured, user: int) -> tuple[object]:
    """Return the id of a user, whose picks are to be changed."""
    (found,) = killed_keys.rows("SELECT id FROM users WHERE name = ?", f"user number {user:06}")
    return tuple(found)


def test_killed_workers_last_transaction_may_be_complete_or_absent(killed_keys: Measured) -> None:
    assert set(statuses(killed_keys.verdict()).values()) == {"ok"}
    last = rows_of(killed_keys, users_of(killed_keys.case, 1)[-1])
    killed_keys.execute("DELETE FROM picks WHERE user = ?", *last)
    assert set(statuses(killed_keys.verdict()).values()) == {"ok"}


def test_killed_workers_last_transaction_is_rejected_if_partial(killed_keys: Measured) -> None:
    last = rows_of(killed_keys, users_of(killed_keys.case, 1)[-1])
    killed_keys.execute(
        "DELETE FROM picks WHERE rowid = (SELECT max(rowid) FROM picks WHERE user = ?)", *last
    )
    rejected(killed_keys.verdict(), "picks", "which was acknowledged, is gone")


def test_acknowledged_picks_of_a_killed_worker_must_exist(killed_keys: Measured) -> None:
    before = users_of(killed_keys.case, 1)[-2]
    killed_keys.execute("DELETE FROM picks WHERE user = ?", *rows_of(killed_keys, before))
    assert rejected(killed_keys.verdict(), "picks").problems == len(picked_by(killed_keys.case, before))


@pytest.mark.thorough
def test_killed_workers_keep_acknowledged_picks_and_atomic_transactions(
    tmp_path: Path,
) -> None:
    load = Picks("id-rowid", "uuid7", users=20_000, picks=10, items=60)
    case = keys_case("", "", spec=load, settings=Settings(synchronous="off"))

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


# Cycles.


ROLLBACK = Settings(journal_mode="delete", synchronous="off")


def test_untouched_table_passes_and_moved_rows_fail(tmp_path: Path) -> None:
    done = measure(cycles_case(), tmp_path)
    verdict = done.verdict()
    assert verdict.status == "ok", verdict
    assert {check.name: check.checked for check in verdict.checks} == {
        "quick_check": 1,
        "schema": 1,
        "last commit": 3,
    }
    assert len(values(done)) == 3
    done.execute("UPDATE t1 SET id = 4 WHERE id = 1")
    rejected(done.verdict(), "last commit", "(1, 'salt 7 cycle 6", "(4, 'salt 7 cycle 6")


def test_missing_table_is_named(tmp_path: Path) -> None:
    done = measure(cycles_case(), tmp_path)
    with closing(sqlite3.connect(done.path)) as connection:
        connection.execute("DROP TABLE t1")
    verdict = done.verdict()
    assert [check.name for check in verdict.checks if check.status == "failed"] == ["schema", "last commit"]
    assert "cannot read the database: no such table: t1" in verdict.counterexamples
    assert any("lacks definition 1, the table t1" in example for example in verdict.counterexamples)


LONG: dict[str, Any] = {"cycles": 100_000, "timeout_s": None}


def killed_cycles(case: Case, folder: Path) -> Measured:
    """Return a trial whose worker was killed while it worked."""

    def kill(pool: Pool) -> None:
        wait_for(lambda: pool.done_so_far() >= 300)
        pool._processes[0].kill()

    return measure(case, folder, kill)


@pytest.mark.thorough
@pytest.mark.parametrize("transaction", ["none", "run"])
@pytest.mark.parametrize("settings", [ROLLBACK, Settings(synchronous="off")], ids=["delete", "wal"])
def test_acknowledged_commits_of_a_killed_worker_count(
    tmp_path: Path, settings: Settings, transaction: str
) -> None:
    done = killed_cycles(cycles_case(settings, transaction=transaction, **LONG), tmp_path)
    assert [outcome.worker for outcome in done.outcomes if outcome.died] == [1]
    verdict = done.verdict()
    assert verdict.status == "ok", verdict.counterexamples
    with closing(sqlite3.connect(done.path)) as connection, connection:
        connection.execute("DELETE FROM t1 WHERE id = (SELECT max(id) FROM t1)")
        connection.execute("INSERT INTO t1 (value) VALUES ('a row of nobody')")
    rejected(done.verdict(), "last commit", "'a row of nobody') should not be there")


def test_dead_worker_may_have_done_one_unacknowledged_step_but_not_two(tmp_path: Path) -> None:
    done = measure(cycles_case(ROLLBACK), tmp_path)
    ledger, dead = OperationLedger(done.work.shared[0], 1), [Outcome(1, True, None)]
    ledger.announce(ledger.acknowledged() - 1, 0)
    # All operations of a live worker were acknowledged to it.
    rejected(done.verdict(), "last commit", "(3, ", "should not be there")
    assert done.work.verify(dead, nothing).status == "ok"
    ledger.announce(ledger.acknowledged() - 1, 0)
    rejected(done.work.verify(dead, nothing), "last commit", "(3, ", "should not be there")


def test_killed_worker_leaves_no_rows_of_a_transaction_over_the_run(tmp_path: Path) -> None:
    done = killed_cycles(cycles_case(transaction="run", **LONG), tmp_path)
    assert done.verdict().status == "ok"
    assert values(done) == []
    done.execute("INSERT INTO t1 (value) VALUES ('a row of nobody')")
    rejected(done.verdict(), "last commit", "'a row of nobody') should not be there")
