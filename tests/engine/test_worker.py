"""A worker from its start to its report, run in this process."""

import gc
import pickle
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine import worker
from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.worker import POLL_NS, READY_CALL, SLOT_WORDS, Done, FailedWork, Job, Ready
from sqlstress.experiment import experiment_of
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S
from sqlstress.system.child import LAST
from tests.halves import open_work
from tests.pulses import nothing

CASE = Case(driver="dry", concurrency=2, ops=50, warmup_s=0.0)
AT_ONCE = Window(0, 0, FOREVER_NS)


class Parent:
    """The parent's end of the pipe: sends a call, then a window, or is closed if `window` is None."""

    def __init__(self, window: Window | None = AT_ONCE) -> None:
        self.window, self.called = window, False
        self.sent: list[Any] = []
        self.closed = False
        self._pieces: list[bytes] = []

    def send_bytes(self, piece: bytes) -> None:
        self._pieces.append(piece[1:])
        if piece[:1] == LAST:
            self.sent.append(pickle.loads(b"".join(self._pieces)))
            self._pieces.clear()

    def recv(self) -> Window | str:
        if not self.called:
            self.called = True
            return READY_CALL
        if self.window is None:
            raise EOFError
        return self.window

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def process_as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)
    gc.unfreeze()
    gc.enable()


def job_of(case: Case, folder: Path = Path(), number: int = 2) -> Job:
    words = RawArray("q", SLOT_WORDS * (case.concurrency + 1))
    work = open_work(replace(case, driver="dry"), folder, 0, {})  # which needs no files
    work.prepare(nothing)
    return Job(experiment_of(case).worker_half(), case, case.ops, folder, number, 0, words, work.shared)


def run(job: Job, parent: Parent) -> list[Any]:
    worker.main(job, parent)  # type: ignore[arg-type]
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # a failed worker leaves its connections open until its process ends
    return parent.sent


def test_worker_sends_ready_and_then_its_results() -> None:
    parent = Parent()
    ready, done = run(job_of(CASE), parent)
    assert isinstance(ready, Ready)
    assert isinstance(done, Done)
    assert sum(done.totals.operations.values()) == 50
    assert ready.stamp_ns <= done.totals.first_ns
    assert parent.closed
    job = job_of(CASE)
    run(job, Parent())
    assert list(job.counters) == [0] * 16 + [50] + [0] * 7
    run(job_of(CASE), Parent())
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    run(job_of(CASE), Parent())
    assert not gc.isenabled()


def test_stop_flag_or_closed_pipe_ends_a_worker_at_once() -> None:
    job = job_of(CASE)
    job.counters[0] = 1
    _, done = run(job, Parent())
    assert done.totals.operations == {}
    parent = Parent(window=None)
    (ready,) = run(job_of(CASE), parent)
    assert isinstance(ready, Ready)
    assert parent.closed


def test_worker_opens_nothing_before_the_call(tmp_path: Path) -> None:
    parent = Parent(window=None)
    parent.called = True
    assert run(job_of(Case(ops=1, warmup_s=0.0), tmp_path, number=1), parent) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_worker_that_cannot_connect_sends_sqlites_message(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    case = Case(driver=driver, ops=1, warmup_s=0.0, buckets=3)
    (tmp_path / "kv_1.db").write_bytes(b"not a database at all" * 1000)
    (failed,) = run(job_of(case, tmp_path, number=1), Parent())
    assert isinstance(failed, FailedWork)
    assert failed.reason.startswith("cannot open kv_1.db: SQLITE_NOTADB: ")
    assert failed.reason.endswith("file is not a database")


def test_worker_that_fails_sends_the_stores_message(tmp_path: Path) -> None:
    (failed,) = run(job_of(Case(ops=1, warmup_s=0.0), tmp_path / "missing", number=1), Parent())
    assert isinstance(failed, FailedWork)
    assert failed.reason.startswith(
        "cannot open kv.db: SQLITE_CANTOPEN: unable to open database file (check that"
    )
    case = Case(ops=1, warmup_s=0.0)  # connects, but there is no table
    ready, failed = run(job_of(case, tmp_path, number=1), Parent())
    assert isinstance(ready, Ready)
    assert failed == FailedWork("SQLITE_ERROR: no such table: kv")
    job = job_of(CASE)._replace(half=broken)
    assert run(job, Parent()) == [FailedWork("LookupError: no such thing")]


def broken(*_: object) -> None:
    raise LookupError("no such thing")


class Clock:
    """A clock that each reading moves by a step, and each sleep by its length."""

    def __init__(self, step_ns: int) -> None:
        self.now, self.step_ns = 0, step_ns
        self.slept: list[float] = []

    def perf_counter_ns(self) -> int:
        self.now += self.step_ns
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * NS_PER_S)


@pytest.mark.parametrize("start_ns", [0, POLL_NS, NS_PER_S])
def test_wait_for_the_start_sleeps_and_then_polls(monkeypatch: pytest.MonkeyPatch, start_ns: int) -> None:
    clock = Clock(step_ns=1_000)
    monkeypatch.setattr(worker, "time", clock)
    worker.wait_until(start_ns)
    expected = [(start_ns - POLL_NS) / NS_PER_S] if start_ns > POLL_NS else []
    assert clock.slept == pytest.approx(expected, abs=1e-5)
    assert start_ns <= clock.now <= start_ns + 2_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forgets a peak")
def test_peak_memory_of_an_earlier_trial_is_reset() -> None:
    large = 64 << 20
    bytearray(large)
    before = worker.peak_memory_bytes()
    worker.reset_peak_memory()
    after = worker.peak_memory_bytes()
    assert before is not None
    assert after is not None
    assert after < before - large // 2
