"""Files that a dead process leaves: they are recognised, recovered and proved, or found to be wrong.

A copy of the files of an open connection equals the files after a death of its process at that moment,
because the system keeps all that a dead process has written.
"""

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlstress.experiments.crash.database import CrashDatabase, Remains
from sqlstress.experiments.crash.proof import AcknowledgedRecords
from sqlstress.experiments.crash.spec import Transactions
from sqlstress.experiments.crash.worker import LOG, PUT, Entry, Records, transactions, writing
from sqlstress.report import Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite import files, walindex
from sqlstress.targets.sqlite.drivers import Connection, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.drawing import examples
from tests.rows import fault

CASE = Case(
    workload="crash",
    seed=3,
    settings=Settings(synchronous="off", wal_autocheckpoint=0, cache_size=10),
    spec=Transactions(batch=8, value_size=2000),
)
"""The cache is so small that SQLite writes a transaction to the file before its end."""
NOTHING = Remains(0, 0, 0)
CRASHING = ("wal", "delete", "truncate", "persist")


def case_in_mode(journal_mode: str) -> Case:
    return replace(CASE, settings=replace(CASE.settings, journal_mode=journal_mode))


@contextmanager
def writer(case: Case, folder: Path) -> Iterator[Connection]:
    """Open the file as a writer does."""
    (path,) = files.paths(case, folder)
    connection = load_driver("sqlite3").connect(path, 1000)
    try:
        pragmas.apply(connection, case.settings)
        yield connection
    finally:
        connection.close()


def created(case: Case, folder: Path) -> CrashDatabase:
    database = CrashDatabase(SqlitePlace(case, folder))
    database.create()
    return database


def crashed(database: CrashDatabase, place: Path) -> CrashDatabase:
    """Return a copy of the database, as if every process had died."""
    place.mkdir()
    for file in database.place.where.iterdir():
        shutil.copy(file, place)
    found = CrashDatabase(SqlitePlace(database.case, place))
    found.schema = database.schema
    return found


def write(case: Case, connection: Connection, count: int, before: int = 0) -> None:
    """Run `count` transactions of writer 1, which has run `before` transactions."""
    records = Records(case)
    for entry in islice(transactions(case, records, 1), before, before + count):
        writing(connection, "immediate")((records.rows(entry), entry))


def verdict(database: CrashDatabase, told: AcknowledgedRecords) -> Verdict:
    found = database.judge(database.examine(), {1: told})
    database.release()
    return found


@fault("crash", "a process dead at any statement of a transaction", "the next opening undoes it")
@pytest.mark.parametrize("journal_mode", CRASHING)
@settings(max_examples=examples(0.12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(0, 3), steps=st.integers(0, 10))
def test_death_at_any_step_undoes_one_transaction_and_keeps_the_others(
    journal_mode: str, count: int, steps: int
) -> None:
    case = case_in_mode(journal_mode)
    records = Records(case)
    with TemporaryDirectory() as own:
        folder = Path(own) / "living"
        folder.mkdir()
        database = created(case, folder)
        with writer(case, folder) as connection:
            write(case, connection, count)
            entry = Entry(1, count + 1, 5)
            statements = [("BEGIN IMMEDIATE", ()), *((PUT, row) for row in records.rows(entry)), (LOG, entry)]
            for sql, params in statements[:steps]:
                connection.rows(sql, params)
            dead = crashed(database, Path(own) / "dead")
        examined = dead.examine()
        told = {1: AcknowledgedRecords(count, count + 1)}
        assert dead.judge(examined, told).status == "ok"
        assert dead.settle(examined, told) == 0
        assert dead.earlier_bounds == {1: AcknowledgedRecords(count, count)}
        dead.release()


def test_committed_but_unacknowledged_transaction_is_counted(tmp_path: Path) -> None:
    database = created(CASE, tmp_path)
    with writer(CASE, tmp_path) as connection:
        write(CASE, connection, 3)
    examined = database.examine()
    assert database.judge(examined, {1: AcknowledgedRecords(2, 3)}).status == "ok"
    assert database.settle(examined, {1: AcknowledgedRecords(2, 3)}) == 1
    assert database.earlier_bounds == {1: AcknowledgedRecords(3, 3)}
    database.release()


def test_wal_and_hot_journal_are_recognised_before_the_files_are_opened(tmp_path: Path) -> None:
    for mode, expected in (
        ("wal", Remains(1, 0, 0)),
        ("delete", Remains(0, 1, 0)),
        ("persist", Remains(0, 1, 0)),
    ):
        case, folder = case_in_mode(mode), tmp_path / mode
        folder.mkdir()
        database = created(case, folder)
        assert database.remains() == NOTHING
        with writer(case, folder) as connection:
            write(case, connection, 1)
            connection.rows("BEGIN")
            connection.run_many(PUT, Records(case).rows(Entry(1, 2, 5)))
            dead = crashed(database, tmp_path / f"{mode} dead")
            connection.rollback()
            idle = crashed(database, tmp_path / f"{mode} idle")
        assert dead.remains() == expected
        assert idle.remains() == (expected if mode == "wal" else NOTHING)


def test_interrupted_checkpoint_is_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "living"
    folder.mkdir()
    database = created(CASE, folder)
    with writer(CASE, folder) as connection:
        write(CASE, connection, 2)
        ((_, frames, _),) = connection.rows("PRAGMA wal_checkpoint(PASSIVE)")
        whole = crashed(database, tmp_path / "whole")
        write(CASE, connection, 2, before=2)
        cut = crashed(database, tmp_path / "cut")
    shm = cut.place.paths[0].with_name("kv.db-shm")
    words = bytearray(shm.read_bytes())
    # The state in which SQLite leaves it: the number of frames to copy is set, the number of copied ones is
    # still 0.
    assert struct.unpack_from("=I", words, 96) == (0,)
    struct.pack_into("=I", words, 128, frames)
    shm.write_bytes(words)
    assert (whole.remains(), cut.remains()) == (Remains(1, 0, 0), Remains(1, 0, 1))
    assert verdict(cut, AcknowledgedRecords(4, 4)).status == "ok"
    assert not walindex.is_mid_checkpoint(tmp_path / "nowhere.db")


@pytest.fixture
def closed_database(tmp_path: Path) -> CrashDatabase:
    """A database with four transactions, without open connections."""
    database = created(CASE, tmp_path)
    with writer(CASE, tmp_path) as connection:
        write(CASE, connection, 4)
    return database


def execute(database: CrashDatabase, sql: str) -> None:
    with closing(sqlite3.connect(database.place.paths[0])) as connection, connection:
        assert connection.execute(sql).rowcount > 0


@fault("crash", "rows dropped, changed or added after a crash", "found, with an example")
@pytest.mark.parametrize(
    ("sql", "check", "told"),
    [
        ("DELETE FROM log WHERE number = 4", "acknowledged transactions", "transaction 4 of writer 1 was"),
        ("DELETE FROM record WHERE key = 9", "whole transactions", "is gone"),
        ("UPDATE record SET value = x'00' WHERE key = 9", "whole transactions", "that nobody wrote"),
        ("INSERT INTO record VALUES (9999, 1)", "whole transactions", "the key 9999 that nobody wrote"),
        (
            "INSERT INTO log VALUES (99, 1, 5, 1)",
            "acknowledged transactions",
            "5 of writer 1 is there, and was",
        ),
    ],
)
def test_change_of_the_files_fails_a_check(
    closed_database: CrashDatabase, sql: str, check: str, told: str
) -> None:
    assert verdict(closed_database, AcknowledgedRecords(4, 4)).status == "ok"
    execute(closed_database, sql)
    found = verdict(closed_database, AcknowledgedRecords(4, 4))
    assert found.status == "failed"
    assert [told in " ".join(result.counterexamples) for result in found.checks if result.name == check] == [
        True
    ]


@fault("crash", "a definition changed after a crash, or made unreadable", "it is named")
@pytest.mark.parametrize("instead", [b"\xc3NTEGER", b"BLOB"])
def test_changed_definition_is_found(closed_database: CrashDatabase, instead: bytes) -> None:
    with closing(sqlite3.connect(closed_database.place.paths[0])) as connection, connection:
        connection.execute("PRAGMA writable_schema = on")
        ((sql,),) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'log'").fetchall()
        changed = sql.encode().replace(b"INTEGER", instead, 2).replace(instead, b"INTEGER", 1)
        connection.execute("UPDATE sqlite_schema SET sql = CAST(? AS TEXT) WHERE name = 'log'", (changed,))
    found = verdict(closed_database, AcknowledgedRecords(4, 4))
    (integrity,) = [check for check in found.checks if check.name == "integrity_check"]
    assert integrity.counterexamples[0].startswith("kv.db: its schema lacks definition ")
    assert "which was added later" in integrity.counterexamples[1]


@fault("crash", "a file cut off, overwritten or gone after a crash", "it fails with SQLite's answer")
@pytest.mark.parametrize("damage", ["cut", "header", "page", "gone"])
def test_damaged_file_fails_and_raises_nothing(closed_database: CrashDatabase, damage: str) -> None:
    (path,) = closed_database.place.paths
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:5000])
    else:
        start = 0 if damage == "header" else 4096
        data[start : start + 4096] = b"\xff" * 4096
        path.write_bytes(data)
    found = verdict(closed_database, AcknowledgedRecords(4, 4))
    assert found.status == "failed"
    (integrity,) = [check for check in found.checks if check.name == "integrity_check"]
    assert integrity.counterexamples[0].startswith("kv.db: ")


def test_full_disk_is_not_reported_as_damage(
    closed_database: CrashDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = 13
        raise error

    monkeypatch.setattr("sqlstress.experiments.crash.database.read", full)
    with pytest.raises(sqlite3.OperationalError):
        closed_database.examine()
    closed_database.release()


def test_settings_are_read_back_when_the_files_are_made(tmp_path: Path) -> None:
    effective = CrashDatabase(SqlitePlace(case_in_mode("persist"), tmp_path)).create()
    assert (effective["journal_mode"], effective["synchronous"]) == ("persist", "off")
