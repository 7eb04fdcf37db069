"""Measurement of a database's space, and refusals."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sqlstress.errors import EnvironmentFailure, Interrupted
from sqlstress.experiments.classics.spec import SCHEMAS
from sqlstress.report.case import Case, Settings
from sqlstress.system import processes
from sqlstress.targets.sqlite import files, space
from sqlstress.targets.sqlite.drivers import DRIVERS, load_driver
from sqlstress.targets.sqlite.space import DamagedFile, measure_space
from tests.conftest import GRACE_S, own_processes
from tests.drivers import WHOLE
from tests.pulses import nothing
from tests.rows import mostly_thorough
from tests.targets.databases import create, create_picks

NOTHING_WAITS = Settings(busy_timeout_ms=0)


@pytest.fixture(params=mostly_thorough(WHOLE, ("sqlite3",)))
def case(request: pytest.FixtureRequest) -> Case:
    pytest.importorskip(request.param)
    return Case(driver=request.param, settings=NOTHING_WAITS)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_rows_are_counted_for_every_schema(case: Case, path: Path, schema: str) -> None:
    create_picks(path, schema, "uuid4")
    found = measure_space(case, path, nothing)
    assert found.page_size and found.page_count
    assert found.file_bytes == found.page_size * found.page_count == path.stat().st_size
    assert found.table_alone("picks").total("entries") == 40 * 80
    # The key of a rowid table is a separate index; that of a WITHOUT ROWID table is the table itself.
    own_index = schema in ("id-rowid", "pair-rowid")
    assert len(found.indices_of("picks").trees) == 2 + own_index
    assert found.indices_of("picks").total("entries") == (2 + own_index) * 40 * 80


def test_content_of_the_wal_is_counted(case: Case, path: Path) -> None:
    create(path, "PRAGMA journal_mode=wal", "CREATE TABLE t (a)")
    with closing(load_driver(case.driver).connect(path, 0)) as holder:
        holder.rows("PRAGMA wal_autocheckpoint=0")
        holder.run_many("INSERT INTO t VALUES (zeroblob(?))", ((3000,) for _ in range(50)))
        before = path.stat().st_size
        found = measure_space(case, path, nothing)
        assert found.table_alone("t").total("pages") >= 50
        assert found.file_bytes == path.stat().st_size > before


def test_database_with_an_open_reader_is_not_measured(case: Case, path: Path) -> None:
    create(path, "PRAGMA journal_mode=wal", "CREATE TABLE t (a)")
    with files.opened(case, path) as reader, files.opened(case, path) as writer:
        reader.rows("BEGIN")
        reader.rows("SELECT * FROM t")
        writer.rows("INSERT INTO t VALUES (1)")
        with pytest.raises(EnvironmentFailure, match=r"^cannot measure the space of some\.db: another"):
            measure_space(case, path, nothing)


def test_locked_database_is_reported_in_one_line(case: Case, path: Path) -> None:
    create(path, "CREATE TABLE t (a)")
    with files.opened(case, path) as writer:
        writer.rows("BEGIN EXCLUSIVE")
        with pytest.raises(EnvironmentFailure, match=r"^some\.db is locked by another program: [^\n]*$"):
            measure_space(case, path, nothing)


@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
def test_missing_database_is_not_created(case: Case, path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EnvironmentFailure, match=r"cannot measure .*: no such database\.$"):
        measure_space(case, path, nothing)
    assert path.exists() == (content is not None)


def test_measurement_keeps_the_locks_of_this_process(case: Case, path: Path) -> None:
    create(path, "CREATE TABLE t (a)")
    with files.opened(case, path) as holder:
        holder.rows("BEGIN IMMEDIATE")  # others may read, none may write
        measure_space(case, path, nothing)
        with pytest.raises(EnvironmentFailure):
            processes.call_in_subprocess(nothing, write_to, case, path)


def write_to(case: Case, path: Path) -> None:
    with files.opened(case, path) as connection:
        try:
            connection.rows("INSERT INTO t VALUES (1)")
        except Exception as error:
            raise EnvironmentFailure("refused") from error


def test_interrupt_ends_the_measurement(case: Case, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_picks(path, "no-key", "int")
    endless = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT count(*) FROM n"
    monkeypatch.setattr(space, "_TREES", endless)

    def interrupt() -> None:
        raise Interrupted("stopped by SIGINT")

    shared = own_processes()  # Servers of earlier tests.
    with pytest.raises(Interrupted):
        measure_space(case, path, interrupt)
    started = [process for process in own_processes() if process not in shared]
    _, alive = psutil.wait_procs(started, timeout=GRACE_S)  # The system removes a process later.
    assert not alive


@pytest.mark.parametrize(
    ("place", "content"),
    [(0, b"x"), (4096, b"\x07"), (4096 + 3, b"\xff\xff")],
    ids=["header", "kind", "cells"],
)
def test_damage_is_reported_in_one_line_with_the_file_name(
    case: Case, path: Path, place: int, content: bytes
) -> None:
    create(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2)")
    with path.open("r+b") as file:
        file.seek(place)
        file.write(content)
    with pytest.raises(DamagedFile) as refused:
        measure_space(case, path, nothing)
    assert str(refused.value).startswith("some.db is damaged, so its space is unknown: ")
    assert "\n" not in str(refused.value)


def test_unreadable_file_is_reported_in_one_line(case: Case, restricted_folder: Path) -> None:
    path = restricted_folder / "some.db"
    create(path, "CREATE TABLE t (a)")
    path.chmod(0)
    with pytest.raises(EnvironmentFailure, match=r"^cannot use some\.db: SQLITE_CANTOPEN: .+$"):
        measure_space(case, path, nothing)


def test_library_without_dbstat_is_replaced_by_apsw(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_picks(path, "no-key", "int")
    whole = measure_space(Case(), path, nothing)
    used: list[str] = []

    def has_dbstat(driver: str) -> bool:
        used.append(driver)
        return driver == "apsw"

    monkeypatch.setattr(space, "_has_dbstat", has_dbstat)
    pytest.importorskip("apsw")
    assert measure_space(Case(), path, nothing) == whole
    assert used == ["sqlite3", "apsw"]


def test_file_is_measured_without_its_b_trees_where_no_library_has_dbstat(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_picks(path, "no-key", "int")
    whole = measure_space(Case(), path, nothing)
    monkeypatch.setattr(space, "_has_dbstat", lambda _: False)
    assert whole.trees
    assert measure_space(Case(), path, nothing) == replace(whole, trees=())


def test_missing_driver_has_no_dbstat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRIVERS, "apsw", "sqlstress.missing")
    assert not space._has_dbstat("apsw")
