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
from sqlstress.report.case import Case, Settings
from tests.experiments.cycles.cases import case_of, values
from tests.experiments.measured import Measured, measure, rejected, wait_for
from tests.pulses import nothing

ROLLBACK = Settings(journal_mode="delete", synchronous="off")


def test_untouched_table_passes_and_moved_rows_fail(tmp_path: Path) -> None:
    done = measure(case_of(), tmp_path)
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
    done = measure(case_of(), tmp_path)
    with closing(sqlite3.connect(done.path)) as connection:
        connection.execute("DROP TABLE t1")
    verdict = done.verdict()
    assert [check.name for check in verdict.checks if check.status == "failed"] == ["schema", "last commit"]
    assert "cannot read the database: no such table: t1" in verdict.counterexamples
    assert any("lacks definition 1, the table t1" in example for example in verdict.counterexamples)


LONG: dict[str, Any] = {"cycles": 100_000, "timeout_s": None}


def killed(case: Case, folder: Path) -> Measured:
    """Return a trial whose worker was killed while it worked."""

    def kill(pool: Pool) -> None:
        wait_for(lambda: pool.done_so_far() >= 300)
        pool._processes[0].kill()

    return measure(case, folder, kill)


@pytest.mark.thorough
@pytest.mark.parametrize("transaction", ["none", "cycle"])
@pytest.mark.parametrize("settings", [ROLLBACK, Settings(synchronous="off")], ids=["delete", "wal"])
def test_acknowledged_commits_of_a_killed_worker_count(
    tmp_path: Path, settings: Settings, transaction: str
) -> None:
    done = killed(case_of(settings, transaction=transaction, **LONG), tmp_path)
    assert [outcome.worker for outcome in done.outcomes if outcome.died] == [1]
    verdict = done.verdict()
    assert verdict.status == "ok", verdict.counterexamples
    with closing(sqlite3.connect(done.path)) as connection, connection:
        connection.execute("DELETE FROM t1 WHERE id = (SELECT max(id) FROM t1)")
        connection.execute("INSERT INTO t1 (value) VALUES ('a row of nobody')")
    rejected(done.verdict(), "last commit", "'a row of nobody') should not be there")


def test_dead_worker_may_have_done_one_unacknowledged_step_but_not_two(tmp_path: Path) -> None:
    done = measure(case_of(ROLLBACK), tmp_path)
    ledger, dead = OperationLedger(done.work.shared[0], 1), [Outcome(1, True, None)]
    ledger.announce(ledger.acknowledged() - 1, 0)
    # All operations of a live worker were acknowledged to it.
    rejected(done.verdict(), "last commit", "(3, ", "should not be there")
    assert done.work.verify(dead, nothing).status == "ok"
    ledger.announce(ledger.acknowledged() - 1, 0)
    rejected(done.work.verify(dead, nothing), "last commit", "(3, ", "should not be there")


def test_killed_worker_leaves_no_rows_of_a_transaction_over_the_run(tmp_path: Path) -> None:
    done = killed(case_of(transaction="run", **LONG), tmp_path)
    assert done.verdict().status == "ok"
    assert values(done) == []
    done.execute("INSERT INTO t1 (value) VALUES ('a row of nobody')")
    rejected(done.verdict(), "last commit", "'a row of nobody') should not be there")


def test_transaction_of_a_cycle_is_atomic_after_a_kill(tmp_path: Path) -> None:
    settings = Settings(synchronous="off")
    done = killed(case_of(settings, transaction="cycle", **LONG), tmp_path)
    assert len(values(done)) == 3
    done.execute("DELETE FROM t1 WHERE id = 2")
    rejected(done.verdict(), "last commit", "(2, ", "is gone")
