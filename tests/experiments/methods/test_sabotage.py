"""The file is broken on purpose after a cell: the verdict says so, with an example."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.engine.pool import Pool
from sqlstress.engine.protocols import TIMEOUT, Outcome
from sqlstress.engine.summary import outcomes
from sqlstress.engine.trial import plan_window
from sqlstress.experiments.classics.methods_tables import PATH, SCHEMA
from sqlstress.report import Verdict
from sqlstress.report.case import Case
from sqlstress.targets import open_place
from tests.experiments.measured import SALT, rejected, wait_for
from tests.experiments.methods.cells import Ran, cell, prepare_cell, run, work_as
from tests.halves import open_work
from tests.pulses import nothing

INSERT = cell("insert", "JSON", 40)
ALLOCATE = cell("allocate", "1b1", 12)
QUERY = cell("query", "JSON", 36)
UNCHECKED = SCHEMA[2].replace(", CHECK (a_id < b_id)", "")


@pytest.mark.parametrize(
    ("case", "sql", "check", "because"),
    [
        (
            INSERT,
            f"DELETE FROM sample WHERE path = '{PATH.format(25)}'",
            "samples",
            f"{PATH.format(25)}, acknowledged to worker 1, is gone",
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
    rejected(ran.verdict(), "samples", f"{PATH.format(written)} was not acknowledged to worker 1")


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


@pytest.mark.parametrize("name", ["1b1", "VALUES", "JSON", "SPC"])
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


def killed(case: Case, folder: Path, soon_enough: Callable[[Sequence[int]], bool]) -> tuple[Ran, Verdict]:
    """Return a cell whose workers were killed during their work, once the acknowledged rows were enough."""
    work = open_work(case, folder, SALT, {})
    work.prepare(nothing)
    rows = work.shared[1]
    with Pool(case, open_place(case, folder), SALT, work.shared) as pool:
        pool.start(nothing)
        pool.call()
        assert pool.wait_ready(60, nothing) == []
        pool.go(plan_window(case, time.perf_counter_ns(), 0.1))
        wait_for(lambda: soon_enough(rows[:]))
        for process in pool._processes:
            process.kill()
        found = outcomes(pool.gather(60, nothing))
    assert [outcome.died for outcome in found] == [True] * case.concurrency
    return Ran(case, folder, work), work.verify(found, nothing)


ENDLESS = 4_000_000
"""More rows than a worker inserts before it is killed."""


@pytest.mark.thorough
@pytest.mark.parametrize("driver", ["sqlite3", "peewee"])
def test_acknowledged_rows_of_killed_workers_count(driver: str, tmp_path: Path) -> None:
    case = cell("insert", "1b1", ENDLESS, driver=driver)
    ran, verdict = killed(case, tmp_path, lambda rows: min(rows) > 20)
    assert verdict.status == "ok", verdict
    ran.execute("DELETE FROM sample WHERE path = '/dataset/000010.mat'")
    again = ran.work.verify([Outcome(1, True, None)], nothing)
    rejected(again, "samples", "worker 1")


def test_killed_workers_transaction_is_complete_or_absent(tmp_path: Path) -> None:
    case = cell("insert", "1b1", ENDLESS, transaction=True)
    ran, verdict = killed(case, tmp_path, lambda rows: min(rows) > 100)
    assert verdict.status == "ok", verdict
    ran.execute("INSERT INTO sample (path) VALUES ('/dataset/000000.mat')")
    again = ran.work.verify([Outcome(1, True, None)], nothing)
    rejected(again, "samples", "/dataset/000000.mat was not acknowledged to worker 1")
