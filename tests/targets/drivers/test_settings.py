"""Settings are set in their order, read back in words, and refused when SQLite did not take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS, Settings
from sqlstress.targets.sqlite.connections import GET
from sqlstress.targets.sqlite.drivers import Connection, Driver, load_driver, settings
from tests.targets.drivers.conftest import Connect


@pytest.fixture
def connection(connect: Connect) -> Connection:
    return connect()


def first_write(connection: Connection, asked: Settings) -> dict[str, str]:
    """Set, write, read back and check, as a case's files are opened."""
    settings.apply(connection, asked)
    connection.rows("CREATE TABLE IF NOT EXISTS t (x)")
    answers = settings.read_back(connection, asked)
    settings.check(asked, answers)
    return answers


def with_pragma(name: str, value: str) -> Settings:
    return Settings(pragmas=((name, value),))


def told(value: object) -> str:
    """Name a test after what is asked for, not after all the settings that are not."""
    if not isinstance(value, Settings):
        return str(value)
    return ",".join(f"{name}={text}" for name, text in settings.wanted(value) if text not in ("wal", "full"))


@pytest.mark.parametrize(
    ("asked", "name", "answer"),
    [
        *((Settings(journal_mode=mode), "journal_mode", mode) for mode in JOURNAL_MODES),
        *((Settings(synchronous=level), "synchronous", level) for level in SYNCHRONOUS),
        (Settings(fullfsync=True), "fullfsync", "1"),
        (Settings(fullfsync=False), "fullfsync", "0"),
        (Settings(wal_autocheckpoint=123), "wal_autocheckpoint", "123"),
        (Settings(page_size=65536), "page_size", "65536"),
        (Settings(cache_size=-4096), "cache_size", "-4096"),
        (Settings(mmap_size=1 << 20), "mmap_size", "1048576"),
        (with_pragma("temp_store", "MEMORY"), "temp_store", "memory"),
        (with_pragma("auto_vacuum", "incremental"), "auto_vacuum", "incremental"),
        (with_pragma("secure_delete", "fast"), "secure_delete", "fast"),
        (with_pragma("secure_delete", "true"), "secure_delete", "on"),
        (with_pragma("cell_size_check", "yes"), "cell_size_check", "1"),
        (with_pragma("cell_size_check", "false"), "cell_size_check", "0"),
        (with_pragma("locking_mode", "exclusive"), "locking_mode", "exclusive"),
    ],
    ids=told,
)
def test_every_setting_is_read_back_as_it_was_asked(
    connection: Connection, asked: Settings, name: str, answer: str
) -> None:
    assert first_write(connection, asked)[name] == answer


def test_what_was_not_asked_for_is_left_alone_and_read_back(connect: Connect) -> None:
    library_default = connect().rows("PRAGMA wal_autocheckpoint")[0][0]
    answers = first_write(connect(busy_timeout_ms=1234), Settings(synchronous=None))
    assert answers["wal_autocheckpoint"] == str(library_default)
    assert (answers["synchronous"] in SYNCHRONOUS, answers["busy_timeout"]) == (True, "1234")
    assert set(answers) == set(settings.REPORTED)


def test_settings_come_in_the_order_in_which_sqlite_takes_them() -> None:
    further = (("temp_store", "memory"), ("auto_vacuum", "full"))
    assert list(settings.wanted(Settings("wal", "full", True, 10, 8192, 20, 30, further))) == [
        ("page_size", "8192"),
        ("auto_vacuum", "full"),
        ("journal_mode", "wal"),
        ("synchronous", "full"),
        ("fullfsync", "1"),
        ("wal_autocheckpoint", "10"),
        ("cache_size", "20"),
        ("mmap_size", "30"),
        ("temp_store", "memory"),
    ]


def test_a_page_size_that_comes_after_wal_mode_is_too_late(connect: Connect) -> None:
    one, other = connect(), connect()
    first_write(one, Settings(journal_mode="wal", page_size=4096))
    with pytest.raises(UsageError, match="page_size=8192 was not accepted: SQLite answers 4096"):
        first_write(other, Settings(journal_mode="wal", page_size=8192))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Settings(page_size=1000), "page_size=1000 was not accepted: SQLite answers 4096"),
        (Settings(synchronous="fully"), "synchronous=fully was not accepted: SQLite answers normal"),
        (with_pragma("temp_store", "memroy"), "temp_store=memroy was not accepted: SQLite answers default"),
        (with_pragma("cell_size_check", "maybe"), "cell_size_check=maybe was not accepted: SQLite answers 0"),
        (with_pragma("no_such_pragma", "1"), "does not know PRAGMA no_such_pragma"),
    ],
    ids=told,
)
def test_what_sqlite_does_not_take_is_a_usage_error(
    connection: Connection, asked: Settings, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        first_write(connection, asked)


def test_a_journal_mode_that_cant_be_had_is_the_environments_failure(driver: Driver) -> None:
    in_memory = driver.connect(Path(":memory:"), 0)
    try:
        with pytest.raises(EnvironmentFailure, match=r"journal_mode=wal .* SQLite answers 'memory'"):
            first_write(in_memory, Settings(journal_mode="wal"))
    finally:
        in_memory.close()


def test_settings_that_were_read_back_leave_operations_their_lookaside(tmp_path: Path) -> None:
    apsw = pytest.importorskip("apsw")
    connection = load_driver("apsw").connect(tmp_path / "kv.db", 0)
    connection.rows("CREATE TABLE kv (key INTEGER PRIMARY KEY, value)")
    asked = Settings(journal_mode="wal", synchronous="normal")
    settings.apply(connection, asked)
    get = connection.scalar(GET)
    for _ in range(3):
        settings.read_back(connection, asked)
        for key in range(100):
            get((key,))
    own = connection._connection
    assert own.status(apsw.SQLITE_DBSTATUS_LOOKASIDE_HIT)[1] > 300
    assert own.status(apsw.SQLITE_DBSTATUS_LOOKASIDE_MISS_FULL)[1] == 0
    connection.close()
