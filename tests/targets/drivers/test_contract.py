"""What every driver must do, seen from a second connection where that is the only way to see it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

import pytest

from sqlstress.errors import UsageError, message_of
from sqlstress.sqlite_codes import BUSY, BUSY_SNAPSHOT, CORRUPT, INTERRUPT
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, Driver, load_driver
from tests.targets.drivers.conftest import Connect, FakeTime

PUT = "REPLACE INTO kv (key, value) VALUES (?, ?)"
GET = "SELECT value FROM kv WHERE key = ?"
ENDLESS = "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT {} FROM up"
CONSTRAINT_PRIMARYKEY = 1555


@pytest.fixture
def one(connect: Connect) -> Connection:
    connection = connect()
    connection.rows("PRAGMA journal_mode=wal")
    connection.rows("CREATE TABLE kv (key INTEGER PRIMARY KEY, value) WITHOUT ROWID")
    connection.run_many(PUT, [(1, "one"), (2, "two"), (3, None)])
    return connection


@pytest.fixture
def other(one: Connection, connect: Connect) -> Connection:
    return connect()


def table(connection: Connection) -> dict[int, object]:
    return dict(connection.rows("SELECT key, value FROM kv"))


def restart_is_held_up(writer: Connection) -> bool:
    """Commit, then ask for the checkpoint that has to wait for everybody who reads an older snapshot."""
    writer.rows("UPDATE kv SET value = 'newer' WHERE key = 2")
    return bool(writer.rows("PRAGMA wal_checkpoint(RESTART)")[0][0])


def code_of(driver: Driver, connection: Connection, sql: str, params: tuple[object, ...] = ()) -> int | None:
    with pytest.raises(Exception) as refused:
        connection.writer(sql)(params)
    return driver.result_code(refused.value)


def test_a_scalar_is_the_rows_only_column_as_it_is_now_and_none_without_a_row(
    one: Connection, other: Connection
) -> None:
    get = one.scalar(GET)
    assert [get((key,)) for key in (1, 2, 1, 99, 3)] == ["one", "two", "one", None, None]
    other.writer(PUT)((1, "newer"))
    assert get((1,)) == "newer"


@pytest.mark.parametrize("key", [1, 99])
def test_a_scalar_leaves_no_snapshot_open(one: Connection, other: Connection, key: int) -> None:
    # The function is kept: without it, its statement and thus the snapshot would go anyway.
    get = one.scalar(GET)
    before = get((key,))
    assert not restart_is_held_up(other)
    assert get((key,)) == before


@pytest.mark.parametrize("stays_open", [False, True])
def test_rows_leave_no_snapshot_open_which_would_hold_up_that_checkpoint(
    one: Connection, other: Connection, stays_open: bool
) -> None:
    one.rows("SELECT * FROM kv")
    reading = one.iterate("SELECT * FROM kv")
    if stays_open:
        next(reading)
    else:
        del reading
    assert restart_is_held_up(other) is stays_open


def test_a_write_is_visible_to_others_at_once_and_a_transaction_when_it_is_committed(
    one: Connection, other: Connection
) -> None:
    one.run_many(PUT, iter([(4, "four")]))
    one.writer(PUT)((5, "five"))
    before = table(other)
    assert (before[4], before[5]) == ("four", "five")
    one.rows("BEGIN")
    one.run_many(PUT, ((key, "new") for key in (1, 5, 6)))
    one.writer(PUT)((7, "new"))
    assert table(other) == before
    one.rows("COMMIT")
    assert table(other) == {**before, 1: "new", 5: "new", 6: "new", 7: "new"}


def test_rollback_undoes_an_open_transaction_and_does_no_harm_without_one(
    one: Connection, other: Connection
) -> None:
    before = table(one)
    one.rows("BEGIN IMMEDIATE")
    one.writer(PUT)((1, "undone"))
    one.rollback()
    assert table(one) == before
    one.rollback()
    other.writer(PUT)((1, "the lock is free again"))
    assert table(one) == {**before, 1: "the lock is free again"}


def test_iterate_yields_the_rows_one_by_one(one: Connection) -> None:
    assert list(one.iterate("SELECT key FROM kv WHERE key < 3 ORDER BY key")) == [(1,), (2,)]
    assert list(islice(one.iterate(ENDLESS.format("n")), 3)) == [(1,), (2,), (3,)]
    assert list(one.iterate("SELECT key FROM kv WHERE key > 99")) == []


def test_a_function_of_ours_is_called_anew_for_every_row_and_its_error_fails_the_statement(
    one: Connection,
) -> None:
    numbers = count(10)
    one.function("next_number", 1, lambda step: next(numbers) * step)
    one.run_many("INSERT INTO kv VALUES (next_number(2), ?)", iter([("a",), ("b",)]))
    one.rows("INSERT INTO kv SELECT next_number(3), key FROM kv WHERE key IN (1, 2)")
    assert table(one).items() >= {20: "a", 22: "b", 36: 1, 39: 2}.items()

    def refuse() -> None:
        raise ValueError("not today")

    one.function("refuse", 0, refuse)
    with pytest.raises(Exception, match=r"not today|user-defined function raised exception"):
        one.rows("SELECT refuse()")


def test_a_taken_lock_is_busy(driver: Driver, one: Connection, other: Connection) -> None:
    other.rows("BEGIN IMMEDIATE")
    assert code_of(driver, one, PUT, (1, "late")) == BUSY
    assert code_of(driver, one, "BEGIN IMMEDIATE") == BUSY


def test_writing_on_a_stale_snapshot_is_busy_snapshot(
    driver: Driver, one: Connection, other: Connection
) -> None:
    one.rows("BEGIN DEFERRED")
    one.scalar(GET)((1,))
    other.writer(PUT)((1, "newer"))
    assert code_of(driver, one, PUT, (1, "built on what is no more")) == BUSY_SNAPSHOT
    one.rollback()
    assert table(one)[1] == "newer"


def test_other_errors_of_sqlite_have_their_extended_code_and_no_other_has_one(
    driver: Driver, one: Connection
) -> None:
    assert code_of(driver, one, "INSERT INTO kv VALUES (?, ?)", (1, "again")) == CONSTRAINT_PRIMARYKEY
    assert code_of(driver, one, "SELECT nonsense") == 1
    assert driver.result_code(ValueError("no code")) is None
    assert driver.result_code(OSError(BUSY, "no code of SQLite's")) is None
    assert code_of(driver, one, GET, (1, "one parameter too many")) is None
    one.close()
    assert code_of(driver, one, GET, (1,)) is None


def test_damage_is_known_whatever_bytes_sqlite_quotes_of_it(
    driver: Driver, one: Connection, connect: Connect
) -> None:
    one.rows("PRAGMA writable_schema = on")
    one.rows("UPDATE sqlite_schema SET sql = CAST(? AS TEXT)", (b"CREATE TABLE kv(key) \xea",))
    assert code_of(driver, connect(), GET, (1,)) == CORRUPT


def test_text_that_is_no_text_is_told_as_it_is(one: Connection) -> None:
    one.rows("UPDATE kv SET value = CAST(? AS TEXT) WHERE key = 1", (b"one \xea one",))
    with pytest.raises(Exception) as refused:
        one.rows("SELECT value FROM kv")
    assert "one \ufffd one" in message_of(refused.value)


@pytest.mark.parametrize("let_go", [True, False])
def test_a_waiting_takes_a_lock_that_comes_free_while_it_sleeps_or_gives_up_at_its_time_out(
    driver: Driver, connect: Connect, other: Connection, let_go: bool
) -> None:
    time = FakeTime(lambda sleeps: other.rollback() if let_go and sleeps == 3 else None)
    waiting = time.waiting(timeout_s=0.5)
    patient = connect()
    put = waiting.retried(patient.writer(PUT), driver.result_code, patient.rollback)
    other.rows("BEGIN IMMEDIATE")
    if let_go:
        put((1, "patience"))
        assert table(other)[1] == "patience"
        assert len(time.slept) == waiting.busy == 3
        return
    with pytest.raises(Exception) as refused:
        put((1, "too late"))
    assert driver.result_code(refused.value) == BUSY
    assert 0.5 <= time.now < 0.6


def test_an_update_on_a_stale_snapshot_succeeds_when_it_is_begun_again_as_a_whole(
    driver: Driver, one: Connection, other: Connection
) -> None:
    time = FakeTime()
    waiting = time.waiting()
    meddling = iter(["two meanwhile"])

    def append(_params: object) -> None:
        one.rows("BEGIN DEFERRED")
        value = one.scalar(GET)((2,))
        for meanwhile in meddling:
            other.writer(PUT)((2, meanwhile))
        one.writer(PUT)((2, f"{value}, and more"))
        one.rows("COMMIT")

    waiting.retried(append, driver.result_code, one.rollback)(None)
    assert table(other)[2] == "two meanwhile, and more"
    assert (waiting.busy, waiting.busy_snapshot, len(time.slept)) == (0, 1, 1)


def test_the_library_named_is_the_one_in_use(driver: Driver, one: Connection) -> None:
    assert driver.versions()[1] == one.scalar("SELECT sqlite_version()")(())


@pytest.mark.parametrize("name", sorted(DRIVERS))
def test_a_driver_that_is_not_installed_says_what_to_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRIVERS, name, "sqlstress.targets.sqlite.drivers.not_installed")
    remedy = "a Python that has it" if name == "sqlite3" else f"python -m pip install {name}"
    with pytest.raises(
        UsageError, match=rf"driver {name} is not installed \(.*\)\. Use {re.escape(remedy)}, or "
    ):
        load_driver(name)


def test_a_statement_of_another_thread_can_be_interrupted(driver: Driver, one: Connection) -> None:
    with ThreadPoolExecutor(1) as executor:
        answer = executor.submit(one.rows, ENDLESS.format("max(n)"))
        while not answer.done():
            one.interrupt()
        error = answer.exception()
    assert error is not None
    assert driver.result_code(error) == INTERRUPT
    assert table(one) == {1: "one", 2: "two", 3: None}
