"""Transactions of threads that overlap on a shared connection are recorded, and no others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Lock, Thread

import pytest

from sqlstress.recording import OVERLAP
from sqlstress.recording.failed_statements import FailedStatements

INSERT = "INSERT INTO t VALUES (?)"


class Gateway:
    """Connection of several threads, with a lock for each statement."""

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(file, check_same_thread=False)
        self.lock = Lock()

    def run(self, sql: str, *values: object) -> None:
        with self.lock:
            self.connection.execute(sql, values)

    def rollback(self) -> None:
        with self.lock:
            self.connection.rollback()


@pytest.fixture
def gateway(file: Path, recorder: FailedStatements) -> Iterator[Gateway]:
    gateway = Gateway(file)
    with closing(gateway.connection):
        yield gateway


def overlaps(recorder: FailedStatements) -> list[tuple[int, str, str, str]]:
    return [
        (count, traits["first"], traits["then"], traits["end"])
        for topic, _, count, _, traits in recorder.records()
        if topic == OVERLAP
    ]


def interleave(gateway: Gateway, within: Callable[[], None]) -> None:
    """Run a transaction of this thread, and call a function in another thread in its middle.

    The threads share the connection before, and also use it afterwards.
    """
    begun, done = Event(), list[bool]()

    def run_within() -> None:
        gateway.run("SELECT 1")
        begun.wait()
        within()
        done.append(True)

    thread = Thread(target=run_within)
    gateway.run("SELECT 2")
    thread.start()
    for _ in range(3):
        gateway.run("SELECT 3")
    gateway.run(INSERT, 1)
    begun.set()
    while not done:  # This thread does not wait by a function of threading.
        pass
    gateway.run(INSERT, 2)
    gateway.connection.commit()
    gateway.run("SELECT 4")
    thread.join()


def test_write_in_the_transaction_of_another_thread_is_recorded(
    gateway: Gateway, recorder: FailedStatements
) -> None:
    interleave(gateway, lambda: gateway.run(INSERT, 3))
    assert overlaps(recorder) == [(1, INSERT, INSERT, "COMMIT")]


def test_rollback_of_the_transaction_of_another_thread_is_recorded(
    gateway: Gateway, recorder: FailedStatements
) -> None:
    interleave(gateway, gateway.rollback)
    assert overlaps(recorder) == [(1, INSERT, "ROLLBACK", "ROLLBACK")]


def test_end_after_a_write_of_another_thread_is_recorded(
    gateway: Gateway, recorder: FailedStatements
) -> None:
    def write_and_roll_back() -> None:
        gateway.run(INSERT, 3)
        gateway.run("ROLLBACK")

    interleave(gateway, write_and_roll_back)
    assert overlaps(recorder) == [(1, INSERT, INSERT, "ROLLBACK")]


def test_query_of_another_thread_is_no_overlap(gateway: Gateway, recorder: FailedStatements) -> None:
    interleave(gateway, lambda: gateway.run("SELECT * FROM t"))
    assert overlaps(recorder) == []


def test_transactions_under_a_lock_are_no_overlap(gateway: Gateway, recorder: FailedStatements) -> None:
    lock = Lock()

    def transfer(number: int) -> None:
        with lock:
            gateway.run(INSERT, number)
            gateway.run(INSERT, -number)
            gateway.connection.commit()

    with ThreadPoolExecutor(3) as pool:
        [*pool.map(transfer, range(60))]
    assert overlaps(recorder) == []


def test_transaction_that_threads_hand_over_is_no_overlap(
    gateway: Gateway, recorder: FailedStatements
) -> None:
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        for _ in range(3):
            for pool in (first, second, first):
                pool.submit(gateway.run, INSERT, 1).result()
            second.submit(gateway.connection.commit).result()
    assert overlaps(recorder) == []


def test_thread_that_waits_for_its_helpers_is_no_overlap(
    gateway: Gateway, recorder: FailedStatements
) -> None:
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            gateway.run(INSERT, 0)
            [*pool.map(lambda number: gateway.run(INSERT, number), range(9))]
            gateway.run(INSERT, 10)
            gateway.connection.commit()
    assert overlaps(recorder) == []


def test_transaction_of_a_suspended_generator_is_no_overlap(
    gateway: Gateway, recorder: FailedStatements
) -> None:
    started, done = list[bool](), list[bool]()

    def requests() -> Iterator[None]:
        gateway.run(INSERT, 1)
        yield
        gateway.connection.commit()
        gateway.run("SELECT 1")

    def compute(number: int) -> None:
        started.append(True)
        while len(done) <= number:
            pass

    with ThreadPoolExecutor(1) as pool:
        for number in range(3):
            request = requests()
            pool.submit(next, request).result()
            computing = pool.submit(compute, number)  # The thread is busy outside of the generator.
            while len(started) <= number:
                pass
            gateway.run(INSERT, 2)
            done.append(True)
            computing.result()
            pool.submit(next, request, None).result()
    assert overlaps(recorder) == []
