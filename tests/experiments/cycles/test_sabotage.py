"""The data is broken on purpose, after a run or during one: the verdict says so, with an example."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.ordered import OperationLedger
from sqlstress.engine.pool import Pool
from sqlstress.engine.protocols import Outcome
from sqlstress.engine.worker import SLOT_WORDS, STOP
from sqlstress.report.case import Case, Settings
from tests.experiments.cycles.cases import case_of, values
from tests.experiments.measured import Measured, measure, rejected, wait_for
from tests.pulses import nothing

ROLLBACK = Settings(journal_mode="delete", synchronous="off")


def test_untouched_tables_pass_and_swapped_tables_fail(tmp_path: Path) -> None:
    done = measure(case_of(concurrency=2), tmp_path)
    verdict = done.verdict()
    assert verdict.status == "ok", verdict
    assert {check.name: check.checked for check in verdict.checks} == {
        "quick_check": 1,
        "schema": 2,
        "last commit": 6,
    }
    assert len(values(done)) == 3
    # Rows in another worker's table do not count as the worker's rows.
    done.execute("INSERT INTO t2 (value) SELECT value FROM t1")
    done.execute("DELETE FROM t1")
    rejected(done.verdict(), "last commit", "('t1', 1, ", "('t2', 4, ")


def test_missing_table_is_named(tmp_path: Path) -> None:
    done = measure(case_of(), tmp_path)
    with closing(sqlite3.connect(done.path)) as connection:
        connection.execute("DROP TABLE t1")
    verdict = done.verdict()
    assert [check.name for check in verdict.checks if check.status == "failed"] == ["schema", "last commit"]
    assert "cannot read the database: no such table: t1" in verdict.counterexamples
    assert any("lacks definition 1, the table t1" in example for example in verdict.counterexamples)


LONG: dict[str, Any] = {"cycles": 100_000, "timeout_s": None}


def killed(case: Case, folder: Path) -> Measured:
    """Return a trial whose second worker was killed while it worked."""

    def kill(pool: Pool) -> None:
        wait_for(lambda: pool._words[2 * SLOT_WORDS] >= 300)
        pool._processes[1].kill()
        pool._words[STOP] = 1  # the others stop between two chunks

    return measure(case, folder, kill)


@pytest.mark.thorough
@pytest.mark.parametrize("transaction", ["none", "cycle"])
@pytest.mark.parametrize("settings", [ROLLBACK, Settings(synchronous="off")], ids=["delete", "wal"])
def test_acknowledged_commits_of_a_killed_worker_count(
    tmp_path: Path, settings: Settings, transaction: str
) -> None:
    done = killed(case_of(settings, concurrency=2, transaction=transaction, **LONG), tmp_path)
    assert [outcome.worker for outcome in done.outcomes if outcome.died] == [2]
    verdict = done.verdict()
    assert verdict.status == "ok", verdict.counterexamples
    with closing(sqlite3.connect(done.path)) as connection, connection:
        connection.execute("DELETE FROM t2 WHERE id = (SELECT max(id) FROM t2)")
        connection.execute("INSERT INTO t2 (value) VALUES ('a row of nobody')")
    rejected(done.verdict(), "last commit", "'a row of nobody') should not be there")


def test_dead_worker_may_have_done_one_unacknowledged_step_but_not_two(tmp_path: Path) -> None:
    done = measure(case_of(ROLLBACK), tmp_path)
    ledger, dead = OperationLedger(done.work.shared[0], 1), [Outcome(1, True, None)]
    ledger.announce(ledger.acknowledged() - 1, 0)
    # All operations of a live worker were acknowledged to it.
    rejected(done.verdict(), "last commit", "('t1', 3, ", "should not be there")
    assert done.work.verify(dead, nothing).status == "ok"
    ledger.announce(ledger.acknowledged() - 1, 0)
    rejected(done.work.verify(dead, nothing), "last commit", "('t1', 3, ", "should not be there")


def test_killed_worker_leaves_no_rows_of_a_transaction_over_the_run(tmp_path: Path) -> None:
    def kill(pool: Pool) -> None:
        wait_for(lambda: pool.done_so_far() >= 300)
        pool._processes[0].kill()

    done = measure(case_of(transaction="run", **LONG), tmp_path, kill)
    assert done.verdict().status == "ok"
    assert values(done) == []
    done.execute("INSERT INTO t1 (value) VALUES ('a row of nobody')")
    rejected(done.verdict(), "last commit", "'a row of nobody') should not be there")


def test_transaction_of_a_cycle_is_atomic_after_a_kill(tmp_path: Path) -> None:
    settings = Settings(synchronous="off")
    done = killed(case_of(settings, concurrency=2, transaction="cycle", **LONG), tmp_path)
    assert len(values(done, "t2")) == 3
    done.execute("DELETE FROM t2 WHERE id = 2")
    rejected(done.verdict(), "last commit", "('t2', 2, ", "is gone")
