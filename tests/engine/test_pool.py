"""The pool of worker processes, their owner, and messages on failures; a few tests start real processes."""

import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine import pool as pools
from sqlstress.engine.loop import Totals, Window
from sqlstress.engine.pool import Pool, WorkerExit, WorkerFailure, our_processes, starts_without_disk
from sqlstress.engine.protocols import Findings
from sqlstress.engine.study import as_failure
from sqlstress.engine.trial import plan_window
from sqlstress.engine.worker import DISMISSED, SLOT_WORDS, Done, FailedWork, Observed, Ready
from sqlstress.errors import Interrupted, UsageError
from sqlstress.plan import cases_of
from sqlstress.report.case import Case
from sqlstress.statistics.series import Series
from sqlstress.system.child import MORE, PIECE, send
from sqlstress.system.processes import MAX_PIPES, wait_readable
from sqlstress.targets import open_place
from tests.halves import open_work
from tests.pulses import nothing
from tests.rows import fault

DRY = Case(driver="dry", concurrency=2, ops=100, warmup_s=0.0)
DONE = Done(Totals(), Findings())


def test_pipes_beyond_the_limit_of_windows_are_waited_for() -> None:
    pairs = [Pipe() for _ in range(2 * MAX_PIPES + 5)]
    try:
        for number in (0, MAX_PIPES - 1, MAX_PIPES, 2 * MAX_PIPES + 4):
            pairs[number][1].send("here")
        ready = wait_readable([ours for ours, _ in pairs], 0.0)
        assert [[ours for ours, _ in pairs].index(pipe) for pipe in ready] == [0, 59, 60, 124]
    finally:
        for pair in pairs:
            for end in pair:
                end.close()


class Clock:
    """A clock that moves a second with every call."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now

    def perf_counter_ns(self) -> int:
        return 1_000


@contextmanager
def silent(case: Case, *companions: str) -> Iterator[tuple[Pool, list[Any]]]:
    """Yield a pool without processes, and those ends of its pipes that workers and companions would hold."""
    pool, their_ends = Pool(case, open_place(case, Path()), 0, (), companions), []
    for number in range(1, case.concurrency + len(companions) + 1):
        ours, their_end = Pipe()
        pool._listen(ours, number)
        their_ends.append(their_end)
    yield pool, their_ends
    for pipe in (*pool._pipes, *their_ends):
        pipe.close()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Pool, list[Any], Clock]]:
    """A pool of two workers without processes, on a fake clock."""
    clock = Clock()
    monkeypatch.setattr(pools, "time", clock)
    monkeypatch.setattr(pools, "TICK_S", 0.0)
    with silent(DRY) as (pool, theirs):
        yield pool, theirs, clock


Waiting = tuple[Pool, list[Any], Clock]


def test_worker_not_ready_in_time_is_reported(waiting: Waiting) -> None:
    pool, (first, _), _ = waiting
    send(first, Ready(500))
    late = pool.wait_ready(5.0, nothing)
    assert late == [WorkerExit(2, reason="did not get ready within the time-out, and was ended")]


def test_start_continues_while_workers_become_ready(waiting: Waiting) -> None:
    pool, (first, second), clock = waiting
    start_s = clock.now
    due = [(start_s + 4.0, first), (start_s + 8.0, second)]

    def pulse() -> None:
        while due and clock.now >= due[0][0]:
            send(due.pop(0)[1], Ready(500))

    assert pool.wait_ready(6.0, pulse) == []
    assert clock.now > start_s + 8.0


def test_worker_that_fails_while_starting_is_reported(waiting: Waiting) -> None:
    pool, (first, second), _ = waiting
    send(first, FailedWork("SQLITE_CANTOPEN: unable to open database file"))
    send(second, Ready(500))
    failed = pool.wait_ready(5.0, nothing)
    assert failed == [WorkerExit(1, reason="SQLITE_CANTOPEN: unable to open database file")]
    assert failed[0].over_ns == 1_000


@pytest.mark.parametrize("stamp_ns", [-1, 1_001])
def test_worker_with_another_clock_is_reported(waiting: Waiting, stamp_ns: int) -> None:
    pool, (first, second), _ = waiting
    send(first, Ready(stamp_ns))
    send(second, Ready(1_000))
    assert pool.wait_ready(5.0, nothing) == [WorkerExit(1, reason="its clock is not the parent's")]


def test_results_come_in_the_order_of_the_workers(waiting: Waiting) -> None:
    pool, (first, second), _ = waiting
    send(second, DONE)
    pulses: list[int] = []

    def pulse() -> None:
        if not pulses:
            send(first, DONE)
        pulses.append(1)

    assert [ended.worker for ended in pool.gather(9.0, pulse)] == [1, 2]


def test_hung_worker_is_ended_and_other_results_are_kept(waiting: Waiting) -> None:
    pool, (first, _), _ = waiting
    send(first, DONE)
    ended = pool.gather(30.0, nothing)
    assert ended == [WorkerExit(1, DONE), WorkerExit(2, reason="hung within the time-out, and was ended")]
    assert ended[1].over_ns == 0, "it may still write"


def test_half_sent_results_are_abandoned_after_the_time_out(waiting: Waiting) -> None:
    pool, (first, second), _ = waiting
    send(first, DONE)
    second.send_bytes(MORE + bytes(PIECE))
    pulses: list[int] = []
    ended = pool.gather(30.0, lambda: pulses.append(1))
    assert ended == [WorkerExit(1, DONE), WorkerExit(2, reason="hung within the time-out, and was ended")]
    assert len(pulses) > 10


def test_worker_that_makes_progress_is_waited_for(waiting: Waiting) -> None:
    pool, theirs, clock = waiting

    def work() -> None:
        pool._words[2 * SLOT_WORDS] += 1
        if clock.now > 500:
            for pipe in theirs:
                send(pipe, DONE)

    assert pool.gather(30.0, work) == [WorkerExit(1, DONE), WorkerExit(2, DONE)]
    assert clock.now > 500
    assert pool.done_so_far() == pool._words[2 * SLOT_WORDS]


def test_raising_pulse_ends_the_wait(waiting: Waiting) -> None:
    pool, _, _ = waiting

    def stop() -> None:
        raise Interrupted("stopped by SIGINT")

    with pytest.raises(Interrupted):
        pool.gather(30.0, stop)


def test_worker_that_died_before_the_start_is_no_error_yet(waiting: Waiting) -> None:
    pool, (first, second), _ = waiting
    first.close()
    pool.go(Window(0, 0, 1))
    assert second.recv() == Window(0, 0, 1)


@pytest.fixture
def companions(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Pool, list[Any]]]:
    """A pool of a worker and two companions without processes, with the companions' ends of the pipes."""
    monkeypatch.setattr(pools, "time", Clock())
    with silent(Case(driver="dry"), "checkpointer", "WAL watcher") as (pool, (_, *theirs)):
        yield pool, theirs


def observed(name: str) -> Observed:
    return Observed([Series(name, "frames", (1, 2), (0, 5))])


def test_companions_send_series_in_order_once_dismissed(companions: tuple[Pool, list[Any]]) -> None:
    pool, (checkpointer, watcher) = companions
    send(watcher, observed("b"))

    def pulse() -> None:
        if pool._words[DISMISSED]:
            send(checkpointer, observed("a"))

    series, problem = pool.dismiss(1000.0, pulse)
    assert [entry.name for entry in series] == ["a", "b"]
    assert problem is None


def test_failed_companion_is_reported_and_other_series_are_kept(companions: tuple[Pool, list[Any]]) -> None:
    pool, (checkpointer, watcher) = companions
    send(checkpointer, FailedWork("SQLITE_FULL: database or disk is full"))
    send(watcher, observed("b"))
    series, problem = pool.dismiss(1000.0, nothing)
    assert [entry.name for entry in series] == ["b"]
    assert problem == (
        "the checkpointer failed: SQLITE_FULL: database or disk is full; the workers' figures are kept"
    )


def test_hung_companion_is_reported(companions: tuple[Pool, list[Any]]) -> None:
    pool, (checkpointer, _) = companions
    send(checkpointer, observed("a"))
    series, problem = pool.dismiss(5.0, nothing)
    assert [entry.name for entry in series] == ["a"]
    assert problem is not None
    assert problem.startswith("the WAL watcher did not end within the time-out, and was ended")


def test_process_that_cannot_start_is_named_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", refuse)
    with (
        pytest.raises(WorkerFailure, match=r"process 1 of 2: Resource .*Lower --concurrency"),
        Pool(DRY, open_place(DRY, Path()), 0, ()) as pool,
    ):
        pool.start(nothing)


class Stubborn:
    """A process that ends only when the method named `heeds` is called; "": it has already ended."""

    def __init__(self, heeds: str) -> None:
        self.heeds, self.exitcode = heeds, None if heeds else 0
        self.done: list[str] = []

    def is_alive(self) -> bool:
        return self.exitcode is None

    def join(self, timeout: float) -> None:
        pass

    def _do(self, call: str) -> None:
        self.done.append(call)
        if call == self.heeds:
            self.exitcode = -1

    def terminate(self) -> None:
        self._do("terminate")

    def kill(self) -> None:
        self._do("kill")


@pytest.mark.parametrize(
    ("heeds", "expected"), [("", []), ("terminate", ["terminate"]), ("kill", ["terminate", "kill"])]
)
def test_stubborn_process_is_terminated_and_then_killed(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch, heeds: str, expected: list[str]
) -> None:
    pool, _, _ = waiting
    monkeypatch.setattr("sqlstress.engine.pool.GRACE_S", 0.01)
    for name in ("terminate", "kill"):
        monkeypatch.setattr(f"multiprocessing.process.BaseProcess.{name}", getattr(Stubborn, name))
    process: Any = Stubborn(heeds)
    pool._processes = [process]
    pool.end()
    assert pool._words[0] == 1
    assert process.done == expected


def test_waiting_for_the_end_of_processes_can_be_interrupted(waiting: Waiting) -> None:
    pool, _, _ = waiting
    process: Any = Stubborn("neither")
    pool._processes = [process]

    def stop() -> None:
        raise Interrupted("stopped by SIGINT")

    with pytest.raises(Interrupted):
        pool.join(30.0, stop)


@contextmanager
def started(case: Case, folder: Path = Path(), where: Path | None = None) -> Iterator[Pool]:
    """Yield a pool of real processes with files in `folder`; the workers look for them in `where`."""
    work = open_work(case, folder, 0, {})
    work.prepare(nothing)
    work.release()
    with Pool(case, open_place(case, where or folder), 0, work.shared) as pool:
        pool.start(nothing)
        pool.call()
        yield pool


def test_real_workers_start_together_work_and_end() -> None:
    with started(DRY) as pool:
        assert pool.wait_ready(60.0, nothing) == []
        window = plan_window(DRY, time.perf_counter_ns(), 0.1)
        pool.go(window)
        ended = pool.gather(60.0, nothing)
        assert pool.join(60.0, nothing)
    assert [worker.reason for worker in ended] == [None, None]
    for worker in ended:
        assert worker.done and sum(worker.done.totals.operations.values()) == 100
        assert worker.done.totals.first_ns >= window.starts_ns
    assert pool.done_so_far() == 200


@fault("workers", "the databases' folder gone when workers start", "each says what SQLite answered")
def test_real_workers_that_cannot_open_their_files_say_why(tmp_path: Path) -> None:
    case = Case(concurrency=1, ops=10, warmup_s=0.0)
    with started(case, tmp_path, tmp_path / "missing") as pool:
        (failed,) = pool.wait_ready(60.0, nothing)
    assert failed.worker == 1
    assert "unable to open database file" in (failed.reason or "")


def test_killed_worker_has_a_time_of_its_end() -> None:
    with started(replace(DRY, concurrency=1)) as pool:
        assert pool.wait_ready(60.0, nothing) == []
        killed_ns = time.perf_counter_ns()
        pool._processes[0].kill()
        (ended,) = pool.gather(60.0, nothing)
    assert killed_ns < ended.over_ns <= time.perf_counter_ns()


def test_leaving_ends_workers_that_are_still_starting() -> None:
    with started(DRY) as pool:
        processes = list(pool._processes)
    assert [process.is_alive() for process in processes] == [False, False]


def refused() -> Exception:
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect("file:nowhere?mode=rw", uri=True)
    return caught.value


def test_exceptions_become_failures_with_advice_except_our_own() -> None:
    failure = as_failure(refused(), "sqlite3")
    assert str(failure).startswith(
        "SQLITE_CANTOPEN: unable to open database file (check that the folder exists"
    )
    assert (
        str(as_failure(OSError(24, "Too many open files"), "dry"))
        == "OSError: [Errno 24] Too many open files"
    )
    failure = as_failure(KeyError("x"), "sqlite3")
    assert (failure.exit_code, "unexpected: please report it" in str(failure)) == (4, True)
    error = UsageError("no")
    assert as_failure(error, "sqlite3") is error


def only(workload: str, **values: Any) -> Case:
    return cases_of({"concurrency": 1, **values} if workload != "methods" else values, workload)[-1]


def elsewhere(dsn: str) -> Case:
    pytest.importorskip("psycopg")
    return only("kv", driver="psycopg", dsn=dsn, anyway=True)


def test_process_families_change_only_with_user_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = only("exec", command=[sys.executable], alone=True)
    monkeypatch.setattr("sqlstress.engine.pool.COUNTS_ENDED_CHILDREN", True)
    assert [family.changing for case in (only("kv"), programs) if (family := our_processes(case))] == [
        False,
        True,
    ]
    monkeypatch.setattr("sqlstress.engine.pool.COUNTS_ENDED_CHILDREN", False)
    assert our_processes(programs) is None


def test_only_our_own_workers_with_files_start_without_disk_use() -> None:
    assert starts_without_disk(only("kv")) and starts_without_disk(only("methods"))
    for case in (
        only("kv", driver="dry"),
        only("exec", command=[sys.executable], alone=True),
        only("app", file="examples/app/bank.py"),
        Case(workload="classic", ops=5),
        elsewhere("postgresql://user@127.0.0.1/app"),
    ):
        assert not starts_without_disk(case), case


def test_local_user_server_hides_the_load_of_our_processes() -> None:
    assert our_processes(elsewhere("postgresql://user@127.0.0.1/app")) is None
    assert our_processes(elsewhere("postgresql://user@db.example.org/app")) is not None
