"""Behaviour required of every driver, checked from a second connection if necessary."""

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

import pytest

from sqlstress.errors import UsageError, error_message
from sqlstress.sqlite_codes import BUSY, BUSY_SNAPSHOT, CORRUPT, INTERRUPT
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, Driver, load_driver
from tests.targets.drivers.conftest import Connect, FakeTime

PUT = "REPLACE INTO kv (key, value) VALUES (?, ?)"
GET = "SELECT value FROM kv WHERE key = ?"
ENDLESS = "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT {} FROM up"
CONSTRAINT_PRIMARYKEY = 1555


@pytest.fixture
def first(connect: Connect) -> Connection:
    connection = connect()
    connection.rows("PRAGMA journal_mode=wal")
    connection.rows("CREATE TABLE kv (key INTEGER PRIMARY KEY, value) WITHOUT ROWID")
    connection.run_many(PUT, [(1, "one"), (2, "two"), (3, None)])
    return connection


@pytest.fixture
def second(first: Connection, connect: Connect) -> Connection:
    return connect()


def table(connection: Connection) -> dict[int, object]:
    return dict(connection.rows("SELECT key, value FROM kv"))


def restart_is_held_up(writer: Connection) -> bool:
    """Commit; return whether a RESTART checkpoint then has to wait for readers of an older snapshot."""
    writer.rows("UPDATE kv SET value = 'newer' WHERE key = 2")
    return bool(writer.rows("PRAGMA wal_checkpoint(RESTART)")[0][0])


def code_of(driver: Driver, connection: Connection, sql: str, params: tuple[object, ...] = ()) -> int | None:
    with pytest.raises(Exception) as refused:
        connection.writer(sql)(params)
    return driver.result_code(refused.value)


def test_scalar_returns_the_current_value_or_none(first: Connection, second: Connection) -> None:
    get = first.scalar(GET)
    assert [get((key,)) for key in (1, 2, 1, 99, 3)] == ["one", "two", "one", None, None]
    second.writer(PUT)((1, "newer"))
    assert get((1,)) == "newer"


@pytest.mark.parametrize("key", [1, 99])
def test_scalar_leaves_no_snapshot_open(first: Connection, second: Connection, key: int) -> None:
    # Keep the function: otherwise its statement, and so the snapshot, would be freed anyway.
    get = first.scalar(GET)
    before = get((key,))
    assert not restart_is_held_up(second)
    assert get((key,)) == before


@pytest.mark.parametrize("stays_open", [False, True])
def test_unfinished_iteration_alone_keeps_a_snapshot(
    first: Connection, second: Connection, stays_open: bool
) -> None:
    first.rows("SELECT * FROM kv")
    reading = first.iterate("SELECT * FROM kv")
    if stays_open:
        next(reading)
    else:
        del reading
    assert restart_is_held_up(second) is stays_open


def test_writes_are_visible_to_others_once_committed(first: Connection, second: Connection) -> None:
    first.run_many(PUT, iter([(4, "four")]))
    first.writer(PUT)((5, "five"))
    before = table(second)
    assert (before[4], before[5]) == ("four", "five")
    first.rows("BEGIN")
    first.run_many(PUT, ((key, "new") for key in (1, 5, 6)))
    first.writer(PUT)((7, "new"))
    assert table(second) == before
    first.rows("COMMIT")
    assert table(second) == {**before, 1: "new", 5: "new", 6: "new", 7: "new"}


def test_rollback_undoes_an_open_transaction_and_does_no_harm_without_one(
    first: Connection, second: Connection
) -> None:
    before = table(first)
    first.rows("BEGIN IMMEDIATE")
    first.writer(PUT)((1, "undone"))
    first.rollback()
    assert table(first) == before
    first.rollback()
    second.writer(PUT)((1, "the lock is free again"))
    assert table(first) == {**before, 1: "the lock is free again"}


def test_iterate_yields_the_rows_one_by_one(first: Connection) -> None:
    assert list(first.iterate("SELECT key FROM kv WHERE key < 3 ORDER BY key")) == [(1,), (2,)]
    assert list(islice(first.iterate(ENDLESS.format("n")), 3)) == [(1,), (2,), (3,)]
    assert list(first.iterate("SELECT key FROM kv WHERE key > 99")) == []


def test_sql_function_runs_for_every_row_and_its_error_is_raised(first: Connection) -> None:
    numbers = count(10)
    first.function("next_number", 1, lambda step: next(numbers) * step)
    first.run_many("INSERT INTO kv VALUES (next_number(2), ?)", iter([("a",), ("b",)]))
    first.rows("INSERT INTO kv SELECT next_number(3), key FROM kv WHERE key IN (1, 2)")
    assert table(first).items() >= {20: "a", 22: "b", 36: 1, 39: 2}.items()

    def refuse() -> None:
        raise ValueError("not today")

    first.function("refuse", 0, refuse)
    with pytest.raises(Exception, match=r"not today|user-defined function raised exception"):
        first.rows("SELECT refuse()")


def test_taken_lock_returns_busy(driver: Driver, first: Connection, second: Connection) -> None:
    second.rows("BEGIN IMMEDIATE")
    assert code_of(driver, first, PUT, (1, "late")) == BUSY
    assert code_of(driver, first, "BEGIN IMMEDIATE") == BUSY


def test_writing_on_a_stale_snapshot_is_busy_snapshot(
    driver: Driver, first: Connection, second: Connection
) -> None:
    first.rows("BEGIN DEFERRED")
    first.scalar(GET)((1,))
    second.writer(PUT)((1, "newer"))
    assert code_of(driver, first, PUT, (1, "built on what is no more")) == BUSY_SNAPSHOT
    first.rollback()
    assert table(first)[1] == "newer"


def test_only_errors_of_sqlite_have_an_extended_code(driver: Driver, first: Connection) -> None:
    assert code_of(driver, first, "INSERT INTO kv VALUES (?, ?)", (1, "again")) == CONSTRAINT_PRIMARYKEY
    assert code_of(driver, first, "SELECT nonsense") == 1
    assert driver.result_code(ValueError("no code")) is None
    assert driver.result_code(OSError(BUSY, "no code of SQLite's")) is None
    assert code_of(driver, first, GET, (1, "one parameter too many")) is None
    first.close()
    assert code_of(driver, first, GET, (1,)) is None


def test_damage_is_recognized_with_undecodable_text(
    driver: Driver, first: Connection, connect: Connect
) -> None:
    first.rows("PRAGMA writable_schema = on")
    first.rows("UPDATE sqlite_schema SET sql = CAST(? AS TEXT)", (b"CREATE TABLE kv(key) \xea",))
    assert code_of(driver, connect(), GET, (1,)) == CORRUPT


def test_undecodable_text_is_reported_with_replacement_characters(first: Connection) -> None:
    first.rows("UPDATE kv SET value = CAST(? AS TEXT) WHERE key = 1", (b"one \xea one",))
    with pytest.raises(Exception) as refused:
        first.rows("SELECT value FROM kv")
    assert "one \ufffd one" in error_message(refused.value)


@pytest.mark.parametrize("let_go", [True, False])
def test_retry_gets_a_released_lock_or_times_out(
    driver: Driver, connect: Connect, second: Connection, let_go: bool
) -> None:
    time = FakeTime(lambda sleeps: second.rollback() if let_go and sleeps == 3 else None)
    waiting = time.waiting(timeout_s=0.5)
    patient = connect()
    put = waiting.retried(patient.writer(PUT), driver.result_code, patient.rollback)
    second.rows("BEGIN IMMEDIATE")
    if let_go:
        put((1, "patience"))
        assert table(second)[1] == "patience"
        assert len(time.slept) == waiting.busy == 3
        return
    with pytest.raises(Exception) as refused:
        put((1, "too late"))
    assert driver.result_code(refused.value) == BUSY
    assert 0.5 <= time.now < 0.6


def test_update_on_a_stale_snapshot_succeeds_when_retried_as_a_whole(
    driver: Driver, first: Connection, second: Connection
) -> None:
    time = FakeTime()
    waiting = time.waiting()
    meddling = iter(["two meanwhile"])

    def append(_params: object) -> None:
        first.rows("BEGIN DEFERRED")
        value = first.scalar(GET)((2,))
        for meanwhile in meddling:
            second.writer(PUT)((2, meanwhile))
        first.writer(PUT)((2, f"{value}, and more"))
        first.rows("COMMIT")

    waiting.retried(append, driver.result_code, first.rollback)(None)
    assert table(second)[2] == "two meanwhile, and more"
    assert (waiting.busy, waiting.busy_snapshot, len(time.slept)) == (0, 1, 1)


def test_named_library_is_the_one_in_use(driver: Driver, first: Connection) -> None:
    assert driver.versions()[1] == first.scalar("SELECT sqlite_version()")(())


@pytest.mark.parametrize("name", sorted(DRIVERS))
def test_missing_driver_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRIVERS, name, "sqlstress.targets.sqlite.drivers.not_installed")
    remedy = "a Python that has it" if name == "sqlite3" else f"python -m pip install {name}"
    with pytest.raises(
        UsageError, match=rf"driver {name} is not installed \(.*\)\. Use {re.escape(remedy)}, or "
    ):
        load_driver(name)


def test_statement_of_another_thread_can_be_interrupted(driver: Driver, first: Connection) -> None:
    with ThreadPoolExecutor(1) as executor:
        answer = executor.submit(first.rows, ENDLESS.format("max(n)"))
        while not answer.done():
            first.interrupt()
        error = answer.exception()
    assert error is not None
    assert driver.result_code(error) == INTERRUPT
    assert table(first) == {1: "one", 2: "two", 3: None}
