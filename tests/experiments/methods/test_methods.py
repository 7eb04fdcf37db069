"""Every method through every driver leaves the rows, and gives the answer, that it should."""

from __future__ import annotations

import importlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import peewee
import pytest

from sqlstress import sqlite_codes as codes
from sqlstress.engine.protocols import DONE, LIMIT, TIMEOUT
from sqlstress.errors import UsageError
from sqlstress.experiments.classics import methods_worker as worker
from sqlstress.experiments.classics import orm
from sqlstress.experiments.classics.methods_experiment import SCALES as PLANNED
from sqlstress.experiments.classics.methods_tables import queried_pairs, queried_sets
from sqlstress.experiments.classics.orm import MODELS
from sqlstress.report.case import Case
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, load_driver
from tests.drivers import WHOLE
from tests.experiments.measured import wait_for
from tests.experiments.methods.cells import FAST, Ran, cell, prepare_cell, run, work_as
from tests.rows import mostly_thorough, thorough

SCALES = {"insert": 30, "allocate": 9, "query": 36}
EVERY = sorted({(each.phase, *tricks.split(" + ")) for each in PLANNED for tricks in each.tricks})


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
    assert [totals.operations for totals in ran.totals] == [{case.spec.phase: 1}]
    assert {found.effective["journal_mode"] for found in ran.findings} == {case.settings.journal_mode}
    counted = {"insert": "samples", "allocate": "results", "query": "values read"}[case.spec.phase]
    assert {check.name: check.checked for check in verdict.checks}[counted] == case.spec.rows


def test_bare_statements_equal_those_of_peewee() -> None:
    peewee.SqliteDatabase(":memory:").bind(MODELS)
    case = cell("query", "BLK", 12)
    pairs = queried_pairs(case, queried_sets(case))
    for name, query in orm.FORMS.items():
        text, params = query(pairs).sql()
        assert (worker.query_statement(name, len(pairs)), [*chain.from_iterable(pairs)]) == (text, params)
    rows: tuple[dict[str, Any], ...] = ({"path": "a"}, {"a": 1, "b": 2, "val": -1.0})
    for phase, model, row in zip(("insert", "allocate"), MODELS, rows, strict=True):
        assert model.insert_many([row]).sql() == ("".join(worker.INSERT[phase]), [*row.values()])


def nearly_no_variables(monkeypatch: pytest.MonkeyPatch, driver: str, limit: int) -> None:
    connection = importlib.import_module(DRIVERS[driver])
    kind = {"apsw": "ApswConnection", "sqlite3": "StdlibConnection", "peewee": "PeeweeConnection"}[driver]
    monkeypatch.setattr(getattr(connection, kind), "limit", lambda self, category: limit)


@pytest.mark.parametrize(("phase", "needed"), [("insert", 30), ("allocate", 108), ("query", 72)])
def test_more_parameters_than_sqlite_takes_are_a_limit_and_not_tried(
    phase: str, needed: int, driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearly_no_variables(monkeypatch, driver, needed - 1)
    ran = run(replace(cell(phase, "BLK", SCALES[phase]), driver=driver), tmp_path)
    assert ran.outcome == LIMIT
    assert ran.findings[0].note == f"{needed} parameters in one statement; this SQLite takes {needed - 1}"
    assert (ran.totals[0].rows, ran.totals[0].failed) == (0, 1)
    assert ran.verdict().status == "ok"


@pytest.mark.parametrize(("phase", "limit"), [("insert", 4), ("allocate", 12)])
def test_chunks_stay_within_the_parameters_that_sqlite_takes(
    phase: str, limit: int, driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearly_no_variables(monkeypatch, driver, limit)
    sizes: list[int] = []
    through: Any = orm.Orm if driver == "peewee" else worker.Binding
    create_all = through.create_all

    def noted(self: object, rows: list[object]) -> object:
        sizes.append(len(rows))
        return create_all(self, rows)

    monkeypatch.setattr(through, "create_all", noted)
    ran = run(replace(cell(phase, "BLK/n", SCALES[phase], transaction=True), driver=driver), tmp_path)
    assert ran.outcome == DONE
    assert max(sizes) == 4
    assert ran.verdict().status == "ok"


@pytest.mark.thorough
def test_variable_limit_is_where_sqlite_refuses(driver: str, tmp_path: Path) -> None:
    connection = load_driver(driver).connect(tmp_path / "limit.db", 0)
    limit = connection.limit(codes.LIMIT_VARIABLE_NUMBER)
    text = f"SELECT count(*) FROM (VALUES {', '.join(['(?)'] * limit)})"
    assert connection.rows(text, (None,) * limit) == [(limit,)]
    with pytest.raises(Exception, match="too many SQL variables"):
        connection.rows(text.replace("(?)", "(?), (?)", 1), (None,) * (limit + 1))
    connection.close()


@pytest.mark.thorough
def test_nested_conditions_meet_a_limit(driver: str, tmp_path: Path) -> None:
    ran = run(replace(cell("query", "BLK", 2000, samples=100), driver=driver), tmp_path)
    assert ran.outcome == LIMIT
    assert ran.findings[0].note
    assert ran.verdict().status == "ok"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("phase", "name", "transaction", "scale"),
    [
        ("insert", "1b1", False, 300_000),
        ("insert", "1b1", True, 300_000),
        ("insert", "BLK/n", True, 900_000),
        thorough("allocate", "JSON", False, 1200),
        thorough("allocate", "SPC", False, 1500),
        ("query", "1b1", False, 14_000),
    ],
)
@pytest.mark.parametrize("driver", mostly_thorough(WHOLE, ("sqlite3",)), indirect=True)
def test_timed_out_cell_stops_and_keeps_its_acknowledged_rows(
    phase: str, name: str, transaction: bool, scale: int, driver: str, tmp_path: Path
) -> None:
    each_commits = (phase, name, transaction) == ("insert", "1b1", False)
    # A slow disk may take 20 ms for one commit alone.
    timeout_s = 0.5 if each_commits else 0.02
    case = cell(phase, name, scale, transaction=transaction, timeout_s=timeout_s, samples=400, chunk=1000)
    ran = run(replace(case, driver=driver), tmp_path)
    assert ran.outcome == TIMEOUT
    assert ran.findings[0].note == f"given up after {500 if each_commits else 20}ms"
    assert (ran.totals[0].rows, ran.totals[0].operations) == (0, {})
    assert ran.verdict().status == "ok", ran.verdict()
    written = written_rows(ran)
    assert written > 0 if each_commits else written == 0


@contextmanager
def locked(ran: Ran) -> Iterator[Connection]:
    """Hold the write lock of a file: another library in this process would not see it."""
    with files.opened(ran.case, ran.path) as connection:
        connection.rows("BEGIN IMMEDIATE")
        yield connection


WAITING = [("1b1", False, "delete"), ("1b1", True, "delete"), ("1b1", True, "wal"), ("JSON", False, "wal")]


@pytest.mark.parametrize("busy_timeout_ms", [60_000, 20])
@pytest.mark.parametrize(("name", "transaction", "journal"), WAITING)
def test_lock_wait_ends_at_the_time_limit_or_the_busy_timeout(
    name: str,
    transaction: bool,
    journal: str,
    busy_timeout_ms: int,
    driver: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = replace(FAST, journal_mode=journal, busy_timeout_ms=busy_timeout_ms)
    patient = busy_timeout_ms > 50
    more: dict[str, Any] = {"timeout_s": 0.05} if patient else {}
    case = cell("insert", name, 30, transaction=transaction, driver=driver, settings=settings, **more)
    ran = prepare_cell(case, tmp_path)
    releases: list[threading.Thread] = []
    with locked(ran) as connection:

        def release(course: worker.CellCourse) -> None:
            # A patient worker gets the lock in the end, in a statement that was interrupted before.
            wait_for(lambda: course.late)
            time.sleep(0.1)
            connection.rows("COMMIT")

        def begin(course: worker.CellCourse) -> None:
            begun(course)
            if patient:
                releases.append(threading.Thread(target=release, args=(course,)))
                releases[0].start()

        begun = worker.CellCourse.begin
        monkeypatch.setattr(worker.CellCourse, "begin", begin)
        work_as(ran, 1)
        for thread in releases:
            thread.join()
    assert (ran.outcome, ran.totals[0].failed, written_rows(ran)) == (TIMEOUT, 1, 0)
    note = "given up after 50ms" if patient else "a lock was not to be had within 20ms"
    assert ran.findings[0].note == note
    assert patient or ran.totals[0].busy == 1
    assert ran.verdict().status == "ok"


def test_any_other_error_of_sqlite_ends_the_worker(driver: str, tmp_path: Path) -> None:
    ran = prepare_cell(replace(cell("insert", "1b1", 30), driver=driver), tmp_path)
    with closing(sqlite3.connect(ran.path)) as connection, connection:
        connection.execute("INSERT INTO sample (path) VALUES ('/dataset/000017.mat')")
    with pytest.raises(Exception, match="UNIQUE constraint failed"):
        work_as(ran, 1)


def written_rows(ran: Ran) -> int:
    table = {"insert": "sample", "allocate": "result", "query": "result WHERE val = -1"}[ran.case.spec.phase]
    return int(ran.rows(f"SELECT count(*) FROM {table}")[0][0])


def test_cells_that_query_share_one_file_in_any_journal_mode(tmp_path: Path) -> None:
    carry: dict[object, object] = {}
    made = []
    for name, journal in (("1b1", "delete"), ("JSON", "wal"), ("SPC", "delete")):
        case = cell("query", name, 36)
        ran = run(replace(case, settings=replace(case.settings, journal_mode=journal)), tmp_path, carry)
        assert ran.verdict().status == "ok"
        assert ran.findings[0].effective["journal_mode"] == journal
        ran.work.discard()
        made.append(ran.path.stat().st_ino)
    assert len(set(made)) == 1
    # Another seed stores other values; and a cell that writes leaves nothing to query.
    assert run(cell("query", "1b1", 36, seed=5), tmp_path, carry).verdict().status == "ok"
    assert run(cell("insert", "1b1", 5), tmp_path, carry).verdict().status == "ok"
    assert run(cell("query", "1b1", 36, seed=5), tmp_path, carry).verdict().status == "ok"


@pytest.mark.parametrize("phase", ["insert", "query"])
def test_setting_ignored_by_sqlite_is_refused_before_the_work(phase: str, tmp_path: Path) -> None:
    settings = replace(FAST, pragmas=(("temp_store", "7"),))
    with pytest.raises(UsageError, match="temp_store=7 was not accepted"):
        prepare_cell(cell(phase, "JSON", 6, settings=settings), tmp_path)


def test_cells_that_write_leave_no_file(tmp_path: Path) -> None:
    ran = run(cell("insert", "BLK", 5), tmp_path)
    ran.work.discard()
    assert list(tmp_path.iterdir()) == []
