"""Settings are set in order, read back as text, and rejected if SQLite did not accept them."""

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


def first_write(connection: Connection, wanted: Settings) -> dict[str, str]:
    """Set, write, read back and check, as a case's files are opened."""
    settings.apply(connection, wanted)
    connection.rows("CREATE TABLE IF NOT EXISTS t (x)")
    answers = settings.read_back(connection, wanted)
    settings.check(wanted, answers)
    return answers


def with_pragma(name: str, value: str) -> Settings:
    return Settings(pragmas=((name, value),))


def setting_id(value: object) -> str:
    """Return a test id with only the requested settings."""
    if not isinstance(value, Settings):
        return str(value)
    return ",".join(
        f"{name}={text}" for name, text in settings.requested_pragmas(value) if text not in ("wal", "full")
    )


@pytest.mark.parametrize(
    ("wanted", "name", "answer"),
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
    ids=setting_id,
)
def test_every_setting_is_read_back_as_requested(
    connection: Connection, wanted: Settings, name: str, answer: str
) -> None:
    assert first_write(connection, wanted)[name] == answer


def test_unset_settings_keep_their_values_and_are_read_back(connect: Connect) -> None:
    library_default = connect().rows("PRAGMA wal_autocheckpoint")[0][0]
    answers = first_write(connect(busy_timeout_ms=1234), Settings(synchronous=None))
    assert answers["wal_autocheckpoint"] == str(library_default)
    assert (answers["synchronous"] in SYNCHRONOUS, answers["busy_timeout"]) == (True, "1234")
    assert set(answers) == set(settings.REPORTED)


def test_settings_are_in_the_order_that_sqlite_needs() -> None:
    pragmas = (("temp_store", "memory"), ("auto_vacuum", "full"))
    assert list(settings.requested_pragmas(Settings("wal", "full", True, 10, 8192, 20, 30, pragmas))) == [
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


def test_page_size_cannot_change_after_wal_mode(connect: Connect) -> None:
    first, second = connect(), connect()
    first_write(first, Settings(journal_mode="wal", page_size=4096))
    with pytest.raises(UsageError, match="page_size=8192 was not accepted: SQLite answers 4096"):
        first_write(second, Settings(journal_mode="wal", page_size=8192))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Settings(page_size=1000), "page_size=1000 was not accepted: SQLite answers 4096"),
        (Settings(synchronous="fully"), "synchronous=fully was not accepted: SQLite answers normal"),
        (with_pragma("temp_store", "memroy"), "temp_store=memroy was not accepted: SQLite answers default"),
        (with_pragma("cell_size_check", "maybe"), "cell_size_check=maybe was not accepted: SQLite answers 0"),
        (with_pragma("no_such_pragma", "1"), "does not know PRAGMA no_such_pragma"),
    ],
    ids=setting_id,
)
def test_rejected_setting_is_a_usage_error(connection: Connection, wanted: Settings, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        first_write(connection, wanted)


def test_unavailable_journal_mode_is_an_environment_failure(driver: Driver) -> None:
    in_memory = driver.connect(Path(":memory:"), 0)
    try:
        with pytest.raises(EnvironmentFailure, match=r"journal_mode=wal .* SQLite answers 'memory'"):
            first_write(in_memory, Settings(journal_mode="wal"))
    finally:
        in_memory.close()


def test_read_back_leaves_the_lookaside_memory_free(tmp_path: Path) -> None:
    apsw = pytest.importorskip("apsw")
    connection = load_driver("apsw").connect(tmp_path / "kv.db", 0)
    connection.rows("CREATE TABLE kv (key INTEGER PRIMARY KEY, value)")
    wanted = Settings(journal_mode="wal", synchronous="normal")
    settings.apply(connection, wanted)
    get = connection.scalar(GET)
    for _ in range(3):
        settings.read_back(connection, wanted)
        for key in range(100):
            get((key,))
    raw_connection = connection._connection
    assert raw_connection.status(apsw.SQLITE_DBSTATUS_LOOKASIDE_HIT)[1] > 300
    assert raw_connection.status(apsw.SQLITE_DBSTATUS_LOOKASIDE_MISS_FULL)[1] == 0
    connection.close()
