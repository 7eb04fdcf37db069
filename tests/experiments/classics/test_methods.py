"""Every method through every driver leaves the rows, and gives the answer, that it should."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import peewee
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.protocols import DONE, LIMIT, TIMEOUT
from sqlstress.errors import UsageError
from sqlstress.experiments.classics import orm, worker
from sqlstress.experiments.classics.orm import MODELS
from sqlstress.experiments.classics.spec import SCALES as PLANNED
from sqlstress.experiments.classics.worker import (
    METHODS_TABLES,
    objections,
    pairs,
    queried_pairs,
    queried_sets,
    refusal,
    value,
)
from sqlstress.report.case import Case
from sqlstress.targets.sqlite.drivers import Row
from tests.experiments.classics.cases import FAST, Ran, cell, prepare_cell, run, work_as
from tests.experiments.measured import SALT
from tests.rows import mostly_thorough

SCALES = {"insert": 30, "allocate": 9, "query": 36}
EVERY = sorted({(each.phase, *tricks.split(" + ")) for each in PLANNED for tricks in each.methods})


def cell_of_tricks(phase: str, name: str, *others: str) -> Case:
    case = cell(phase, name, SCALES[phase], transaction="TSC" in others)
    journal = "wal" if "WAL" in others else "delete"
    return replace(case, settings=replace(case.settings, journal_mode=journal))


@pytest.fixture(params=mostly_thorough(("apsw", "peewee", "sqlite3"), ("peewee",)))
def driver(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.mark.parametrize("tricks", EVERY, ids=" ".join)
def test_every_method_does_its_work(tricks: tuple[str, ...], driver: str, tmp_path: Path) -> None:
    case = replace(cell_of_tricks(*tricks), driver=driver)
    ran = run(case, tmp_path)
    verdict = ran.verdict()
    assert [found.outcome for found in ran.findings] == [DONE]
    assert verdict.status == "ok", verdict
    assert sum(totals.rows for totals in ran.totals) == case.spec.rows
    kinds = Counter(step.kind for step in worker.MethodsSource.steps_of(case, 1, SALT))
    assert [totals.operations for totals in ran.totals] == [kinds]
    assert {found.effective["journal_mode"] for found in ran.findings} == {case.settings.journal_mode}
    counted = {"insert": "samples", "allocate": "results", "query": "values read"}[case.spec.phase]
    assert {check.name: check.checked for check in verdict.checks}[counted] == case.spec.rows


def test_bare_statements_equal_those_of_peewee() -> None:
    peewee.SqliteDatabase(":memory:").bind(MODELS)
    pairs = queried_pairs(cell("query", "BLK", 12))
    text, params = orm.nested(pairs).sql()
    assert (worker.bulk_statement("query", len(pairs)), [*chain.from_iterable(pairs)]) == (text, params)
    rows: tuple[dict[str, Any], ...] = ({"path": "a"}, {"a": 1, "b": 2, "val": -1.0})
    for phase, model, row in zip(("insert", "allocate"), MODELS, rows, strict=True):
        assert model.insert_many([row]).sql() == (worker.bulk_statement(phase, 1), [*row.values()])


@pytest.mark.thorough
def test_more_parameters_than_sqlite_permits_are_a_limit(driver: str, tmp_path: Path) -> None:
    ran = run(replace(cell("insert", "BLK", 250_001), driver=driver), tmp_path)
    assert (ran.outcome, ran.findings[0].note) == (LIMIT, "too many SQL variables")
    assert (ran.totals[0].rows, ran.totals[0].failed) == (0, 1)
    assert ran.verdict().status == "ok"


@pytest.mark.thorough
def test_nested_conditions_meet_a_limit(driver: str, tmp_path: Path) -> None:
    ran = run(replace(cell("query", "BLK", 2000, samples=100), driver=driver), tmp_path)
    assert ran.outcome == LIMIT
    assert ran.findings[0].note
    assert ran.verdict().status == "ok"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("driver", "phase", "name", "transaction", "scale"),
    [
        ("sqlite3", "insert", "1b1", False, 300_000),
        ("sqlite3", "insert", "1b1", True, 300_000),
        ("sqlite3", "insert", "BLK/n", True, 900_000),
        ("sqlite3", "query", "1b1", False, 14_000),
        ("peewee", "insert", "1b1", False, 300_000),
        ("apsw", "insert", "1b1", True, 300_000),
        ("apsw", "query", "1b1", False, 14_000),
    ],
    indirect=["driver"],
)
def test_timed_out_cell_stops_and_keeps_its_acknowledged_rows(
    phase: str, name: str, transaction: bool, scale: int, driver: str, tmp_path: Path
) -> None:
    each_commits = (phase, name, transaction) == ("insert", "1b1", False)
    # A slow disk may take 20 ms for one commit alone.
    timeout_s = 0.5 if each_commits else 0.02
    case = cell(phase, name, scale, transaction=transaction, timeout_s=timeout_s, samples=400, chunk=1000)
    ran = run(replace(case, driver=driver), tmp_path)
    assert ran.outcome == TIMEOUT
    assert ran.findings[0].note == f"took longer than {500 if each_commits else 20}ms"
    assert ran.totals[0].rows < scale
    assert ran.verdict().status == "ok", ran.verdict()
    written = written_rows(ran)
    assert written > 0 if each_commits else written == 0


@pytest.mark.parametrize(("phase", "name"), [("allocate", "JSON"), ("query", "SPC")])
def test_statement_that_ends_late_is_a_time_out_with_its_rows(
    phase: str, name: str, driver: str, tmp_path: Path
) -> None:
    ran = run(cell(phase, name, SCALES[phase], driver=driver, timeout_s=0.0), tmp_path)
    assert (ran.outcome, ran.findings[0].note) == (TIMEOUT, "took longer than 0s")
    assert ran.verdict().status == "ok"


def test_statement_refused_late_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise ValueError("too many SQL variables")

    ran = prepare_cell(cell("insert", "BLK", 30, timeout_s=1e-9), tmp_path)
    monkeypatch.setattr(worker, "sql_operations", lambda *_: {"BLK": refuse})
    work_as(ran, 1)
    assert ran.outcome == LIMIT


def test_any_other_error_of_sqlite_ends_the_worker(driver: str, tmp_path: Path) -> None:
    ran = prepare_cell(replace(cell("insert", "1b1", 30), driver=driver), tmp_path)
    with closing(sqlite3.connect(ran.path)) as connection, connection:
        connection.execute("INSERT INTO sample (path) VALUES ('/dataset/000017.mat')")
    with pytest.raises(Exception, match="UNIQUE constraint failed"):
        work_as(ran, 1)


def written_rows(ran: Ran) -> int:
    table = {"insert": "sample", "allocate": "result", "query": "result WHERE val = -1"}[ran.case.spec.phase]
    return int(ran.rows(f"SELECT count(*) FROM {table}")[0][0])


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_query_reads_a_file_of_its_journal_mode(tmp_path: Path, journal: str) -> None:
    case = cell("query", "JSON", 36)
    ran = run(replace(case, settings=replace(case.settings, journal_mode=journal)), tmp_path)
    assert ran.verdict().status == "ok"
    assert ran.findings[0].effective["journal_mode"] == journal
    ran.work.discard()
    assert not ran.path.exists()


@pytest.mark.parametrize("phase", ["insert", "query"])
def test_setting_ignored_by_sqlite_is_refused_before_the_work(phase: str, tmp_path: Path) -> None:
    settings = replace(FAST, pragmas=(("temp_store", "7"),))
    with pytest.raises(UsageError, match="temp_store=7 was not accepted"):
        prepare_cell(cell(phase, "JSON", 6, settings=settings), tmp_path)


def test_cells_that_write_leave_no_file(tmp_path: Path) -> None:
    ran = run(cell("insert", "BLK", 5), tmp_path)
    ran.work.discard()
    assert list(tmp_path.iterdir()) == []


# The tables, the place of every row in them, and the queried pairs.


DEFINITIONS = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"


def test_tables_are_those_that_peewee_creates_for_the_models() -> None:
    database = peewee.SqliteDatabase(":memory:")
    database.bind(MODELS)
    database.create_tables(MODELS, safe=False)
    created = [row[0] for row in database.connection().execute(DEFINITIONS)]  # type: ignore[no-untyped-call]
    database.close()
    assert sorted(created) == sorted(METHODS_TABLES)


@given(st.integers(2, 40))
def test_pairs_are_all_pairs_of_ids_in_order(samples: int) -> None:
    assert list(pairs(samples)) == list(combinations(range(1, samples + 1), 2))


@given(st.sampled_from([1, 2, 12, 36, 100, 221]))
def test_all_pairs_between_two_disjoint_sets_are_queried_once(scale: int) -> None:
    case = cell("query", "1b1", scale)
    first, second = queried_sets(case)
    assert len({*first, *second}) == len(first) + len(second) == sum(case.spec.sets)
    found = queried_pairs(case)
    assert sorted(found) == sorted((min(a, b), max(a, b)) for a in first for b in second)
    assert len(found) == scale


def test_pairs_follow_from_the_seed_in_random_order() -> None:
    cases = [cell("query", "1b1", 100, seed=seed) for seed in (1, 1, 2)]
    one, again, different = (queried_pairs(case) for case in cases)
    assert one == again
    assert sorted(one) != sorted(different)
    first, second = queried_sets(cases[0])
    assert one != [(min(a, b), max(a, b)) for a in first for b in second]


# The refusals of SQLite, and the proof of an answer.


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {'(' * 3000}1{')' * 3000}",
        f"SELECT {'+'.join(['1'] * 5000)}",
        " UNION ALL ".join(["SELECT 1"] * 600),
        f"SELECT {','.join(['?'] * 260_000)}",
    ],
    ids=["nesting", "depth", "compound", "variables"],
)
def test_sqlite_refusing_a_large_statement_is_a_limit(query: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as refused:
        connection.execute(query)
    assert refusal(refused.value) == str(refused.value)


def test_recursion_limit_is_a_limit_and_other_errors_are_not() -> None:
    assert "Python's recursion limit" in (refusal(RecursionError("maximum recursion depth")) or "")
    for query in ("SELECT * FROM nothing", "SELECT ((1", "SELEC 1"):
        with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as failed:
            connection.execute(query)
        assert refusal(failed.value) is None


SEED = 3
WANTED = [(1, 2), (4, 9), (2, 3)]
RIGHT: list[Row] = [(a, b, value(a, b, SEED)) for a, b in WANTED]


@pytest.mark.parametrize("answer", [RIGHT, RIGHT[::-1]])
def test_right_rows_are_accepted_in_any_order(answer: list[Row]) -> None:
    assert list(objections(answer, WANTED, SEED)) == []


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        (RIGHT[1:], ["lacks the result (1, 2, "]),
        ([*RIGHT, RIGHT[0]], ["has the result (1, 2, "]),
        ([*RIGHT, (5, 6, 1.0)], ["has the result (5, 6, 1.0)"]),
        ([*RIGHT[:2], (2, 3, -1.0)], ["lacks the result (2, 3, ", "has the result (2, 3, -1.0)"]),
        ([], ["lacks"] * 3),
    ],
)
def test_every_wrong_row_is_named(answer: list[Row], because: list[str]) -> None:
    found = list(objections(answer, WANTED, SEED))
    assert len(found) == len(because)
    for text, part in zip(found, because, strict=True):
        assert part in text


def test_wrong_answers_and_checked_answers_are_counted(driver: str, tmp_path: Path) -> None:
    ran = prepare_cell(replace(cell("query", "JSON", 36), driver=driver), tmp_path)
    with closing(sqlite3.connect(ran.path)) as connection, connection:
        connection.execute("UPDATE result SET val = -1")
    work_as(ran, 1)
    (found,) = ran.findings
    assert (found.reads_checked, found.bad_reads, len(found.bad_read_examples)) == (36, 72, worker.EXAMPLES)
