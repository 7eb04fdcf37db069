"""Settings are set in their order, read back in words, and refused when SQLite did not take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS, Settings
from sqlstress.targets.sqlite.drivers import Connection, Driver, settings
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


@pytest.mark.parametrize("mode", JOURNAL_MODES)
def test_every_journal_mode_is_set_and_read_back(connection: Connection, mode: str) -> None:
    assert first_write(connection, Settings(journal_mode=mode))["journal_mode"] == mode


@pytest.mark.parametrize("level", SYNCHRONOUS)
def test_every_synchronous_level_is_read_back_in_words(connection: Connection, level: str) -> None:
    assert first_write(connection, Settings(synchronous=level))["synchronous"] == level


@pytest.mark.parametrize(
    ("asked", "name", "answer"),
    [
        (Settings(fullfsync=True), "fullfsync", "1"),
        (Settings(fullfsync=False), "fullfsync", "0"),
        (Settings(wal_autocheckpoint=0), "wal_autocheckpoint", "0"),
        (Settings(wal_autocheckpoint=123), "wal_autocheckpoint", "123"),
        (Settings(page_size=512), "page_size", "512"),
        (Settings(page_size=65536), "page_size", "65536"),
        (Settings(cache_size=77), "cache_size", "77"),
        (Settings(cache_size=-4096), "cache_size", "-4096"),
        (Settings(mmap_size=0), "mmap_size", "0"),
        (Settings(mmap_size=1 << 20), "mmap_size", "1048576"),
        (with_pragma("temp_store", "MEMORY"), "temp_store", "memory"),
        (with_pragma("temp_store", "1"), "temp_store", "file"),
        (with_pragma("auto_vacuum", "incremental"), "auto_vacuum", "incremental"),
        (with_pragma("secure_delete", "fast"), "secure_delete", "fast"),
        (with_pragma("secure_delete", "true"), "secure_delete", "on"),
        (with_pragma("secure_delete", "off"), "secure_delete", "off"),
        (with_pragma("cell_size_check", "yes"), "cell_size_check", "1"),
        (with_pragma("cell_size_check", "false"), "cell_size_check", "0"),
        (with_pragma("locking_mode", "exclusive"), "locking_mode", "exclusive"),
        (with_pragma("journal_size_limit", "-1"), "journal_size_limit", "-1"),
    ],
    ids=told,
)
def test_every_setting_is_read_back_as_it_was_asked(
    connection: Connection, asked: Settings, name: str, answer: str
) -> None:
    assert first_write(connection, asked)[name] == answer


def test_what_was_not_asked_for_is_left_alone_and_read_back(connect: Connect) -> None:
    library_default = connect().rows("PRAGMA wal_autocheckpoint")[0][0]
    answers = first_write(connect(), Settings(synchronous=None))
    assert answers["wal_autocheckpoint"] == str(library_default)
    assert answers["synchronous"] in SYNCHRONOUS
    assert set(answers) == set(settings.REPORTED)


def test_the_time_out_that_the_driver_set_is_read_back(connect: Connect) -> None:
    assert first_write(connect(busy_timeout_ms=1234), Settings())["busy_timeout"] == "1234"


def test_settings_come_in_the_order_in_which_sqlite_takes_them() -> None:
    further = (("temp_store", "memory"), ("auto_vacuum", "full"))
    assert list(settings.wanted(Settings("wal", "full", True, 10, 8192, 20, 30, further))) == [
        ("auto_vacuum", "full"),
        ("page_size", "8192"),
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
    with pytest.raises(UsageError, match="page_size: asked for 8192, SQLite answers 4096"):
        first_write(other, Settings(journal_mode="wal", page_size=8192))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Settings(page_size=1000), "page_size: asked for 1000, SQLite answers 4096"),
        (Settings(page_size=131072), "page_size: asked for 131072, SQLite answers 4096"),
        (Settings(synchronous="fully"), "synchronous: asked for fully, SQLite answers normal"),
        (with_pragma("temp_store", "memroy"), "temp_store: asked for memroy, SQLite answers default"),
        (with_pragma("temp_store", "3"), "temp_store: asked for 3, SQLite answers default"),
        (with_pragma("cell_size_check", "maybe"), "cell_size_check: asked for maybe, SQLite answers 0"),
        (with_pragma("no_such_pragma", "1"), "no_such_pragma has nothing to read back"),
    ],
    ids=told,
)
def test_what_sqlite_does_not_take_is_a_usage_error(
    connection: Connection, asked: Settings, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        first_write(connection, asked)


def test_a_journal_mode_that_cant_be_had_is_the_environments_failure(driver: Driver) -> None:
    in_memory = driver.connect(Path(":memory:"), 0, None)
    try:
        with pytest.raises(EnvironmentFailure, match=r"journal_mode=wal .* SQLite answers 'memory'"):
            first_write(in_memory, Settings(journal_mode="wal"))
    finally:
        in_memory.close()
