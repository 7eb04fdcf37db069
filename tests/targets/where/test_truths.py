"""Known holds, syncs and checkpoints are measured correctly, also with either loop."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.kv.spec import LOOPS, Load
from sqlstress.report.case import Case, Settings
from sqlstress.report.results import CHECKPOINT, COMMIT, SYNC
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite import shim
from sqlstress.targets.sqlite.connections import native_unavailable
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.shim import Span, SpanArea, areas, size
from sqlstress.targets.sqlite.where import Blocked, TrialSpans
from tests.rows import mostly_thorough, thorough
from tests.targets.where.actors import (
    acting,
    checkpoints,
    hides_the_index,
    holds,
    meets_a_newer_snapshot,
    opens,
    receive,
    waits,
    working,
)

WAITER, HOLDER = 1, 2
HOLD_S = 0.444
NEAR = 0.03
BRIEF_NS = 50_000_000

pytestmark = pytest.mark.skipif(
    native_unavailable("sqlite3") is not None, reason=f"{native_unavailable('sqlite3')}"
)


@pytest.fixture
def words() -> Any:
    return shared_array("q", size(2))


def make_database(path: Path, journal: str) -> Path:
    connection = load_driver("sqlite3").connect(path, 1000)
    connection.rows(f"PRAGMA journal_mode={journal}")
    connection.rows("CREATE TABLE t (a)")
    connection.close()
    return path


def total(blocked: list[Blocked], cause: str, process: int = HOLDER) -> int:
    return sum(hold.end - hold.begin for hold in blocked if (hold.process, hold.what) == (process, cause))


def waited(recording: TrialSpans) -> Span:
    """Return the only wait of the waiter."""
    (wait,) = (wait_span for wait_span in recording.waits if wait_span.process == WAITER)
    return wait


@pytest.mark.parametrize("driver", ["sqlite3", thorough("apsw")])
@pytest.mark.parametrize("journal", ["wal", thorough("delete"), thorough("truncate")])
@pytest.mark.thorough
def test_known_hold_is_measured_within_3_percent(
    words: Any, tmp_path: Path, driver: str, journal: str
) -> None:
    path = make_database(tmp_path / "a.db", journal)
    with (
        acting(waits, words, WAITER, driver, path) as waiter,
        acting(holds, words, HOLDER, driver, path) as holder,
    ):
        assert (receive(waiter), receive(holder)) == ("ready", "held")
        waiter.send("go")
        time.sleep(0.01)
        holder.send(HOLD_S)
        holder_stamps, waiter_stamps = receive(holder), receive(waiter)
    recording = TrialSpans(areas(words, 2))
    wait = waited(recording)
    blocked = list(recording.blocked(wait))
    truth = holder_stamps["ended"] - waiter_stamps["asked"]
    commit = holder_stamps["ended"] - holder_stamps["freed"]
    assert wait.ns == pytest.approx(waiter_stamps["had"] - waiter_stamps["asked"], rel=NEAR)
    held_ns = sum(span.end - span.begin for span in blocked)
    assert truth - commit - NEAR * truth <= held_ns <= truth * (1 + NEAR)
    # Until the release, only the open transaction can have held it.
    assert total(blocked, COMMIT) >= (holder_stamps["freed"] - waiter_stamps["asked"]) * (1 - NEAR)
    assert {span.process for span in blocked} == {HOLDER}
    assert not recording.contradiction()


@pytest.mark.parametrize("journal", ["wal", thorough("truncate")])
@pytest.mark.thorough
def test_wait_during_a_slow_sync_is_a_wait_for_the_sync(words: Any, tmp_path: Path, journal: str) -> None:
    path = make_database(tmp_path / "a.db", journal)
    with (
        acting(waits, words, WAITER, "sqlite3", path) as waiter,
        acting(holds, words, HOLDER, "apsw", path, slow_sync_s=0.2) as holder,
    ):
        assert (receive(waiter), receive(holder)) == ("ready", "held")
        holder.send(0.0)
        waiter.send("go")
        truth = receive(holder)["synced_ns"]
        receive(waiter)
    recording = TrialSpans(areas(words, 2))
    blocked = list(recording.blocked(waited(recording)))
    assert total(blocked, SYNC) >= 0.8 * sum(span.end - span.begin for span in blocked)
    assert SpanArea(words, HOLDER, 2).syncing_ns == pytest.approx(truth, rel=NEAR)


def test_wait_for_a_checkpoint_names_its_process(words: Any, tmp_path: Path) -> None:
    path = make_database(tmp_path / "a.db", "wal")
    with (
        acting(waits, words, WAITER, "sqlite3", path) as waiter,
        acting(checkpoints, words, HOLDER, "apsw", path, slow_sync_s=0.15) as holder,
    ):
        assert (receive(waiter), receive(holder)) == ("ready", "held")
        holder.send("go")
        time.sleep(0.05)  # its first sync takes longer
        waiter.send("go")
        holder_stamps, waiter_stamps = receive(holder), receive(waiter)
    recording = TrialSpans(areas(words, 2))
    blocked = list(recording.blocked(waited(recording)))
    truth = holder_stamps["ended"] - waiter_stamps["asked"]
    assert total(blocked, CHECKPOINT) == pytest.approx(truth, rel=NEAR)
    assert {span.what for span in blocked} == {CHECKPOINT}


@pytest.mark.parametrize("driver", ["sqlite3", thorough("apsw")])
def test_wait_to_open_a_wal_ends_with_the_opening(words: Any, tmp_path: Path, driver: str) -> None:
    path = make_database(tmp_path / "a.db", "wal")
    with acting(hides_the_index, words, HOLDER, driver, path) as holder:
        assert receive(holder) == "held"
        with acting(opens, words, WAITER, driver, path) as waiter:
            assert receive(waiter) == "ready"
            time.sleep(0.1)
            holder.send("go")
            receive(holder)
            assert (receive(waiter), receive(waiter)) == ("read", "ready")
            assert SpanArea(words, WAITER, 2)[shim.PENDING] == 0
            with acting(holds, words, HOLDER, driver, path) as second:
                assert receive(second) == "held"
                waiter.send("go")
                second.send(0.1)
                receive(second)
                asked_ns = receive(waiter)["asked"]
    assert waited(TrialSpans(areas(words, 2))).begin > asked_ns


def test_lock_released_and_not_retaken_causes_no_wait(words: Any, tmp_path: Path) -> None:
    path = make_database(tmp_path / "a.db", "wal")
    with acting(meets_a_newer_snapshot, words, WAITER, "sqlite3", path) as waiter:
        assert receive(waiter) == "read"
        connection = load_driver("sqlite3").connect(path, 1000)
        connection.rows("INSERT INTO t VALUES (2)")
        connection.close()
        waiter.send("go")
        receive(waiter)
    recording = TrialSpans(areas(words, 2))
    assert not recording.waits and SpanArea(words, WAITER, 2)[shim.PENDING] == 0
    assert len([span for span in recording.transactions if span.ns < 40_000_000]) >= 2


def test_blocked_checkpoint_leaves_no_wait_behind(words: Any, tmp_path: Path) -> None:
    path = make_database(tmp_path / "a.db", "wal")
    with acting(checkpoints, words, WAITER, "sqlite3", path) as waiter:
        assert receive(waiter) == "held"
        with acting(holds, words, HOLDER, "sqlite3", path) as holder:
            assert receive(holder) == "held"
            waiter.send("go")
            time.sleep(0.05)
            holder.send(0.1)
            receive(holder)
        receive(waiter)
    assert SpanArea(words, WAITER, 2)[shim.PENDING] == 0
    assert not [span for span in TrialSpans(areas(words, 2)).waits if span.process == WAITER]


# The same for workers, driven by either loop.


def case_of(loop: str, driver: str = "sqlite3", **settings: Any) -> Case:
    load = Load(read_ratio=0.0, key_space=50, loop=loop, where=True)
    sqlite_settings = Settings(**{"synchronous": "off", **settings})
    return Case(driver=driver, concurrency=1, settings=sqlite_settings, warmup_s=0.0, ops=1, spec=load)


def hold_during_a_write(case: Case, words: Any, folder: Path, hold_s: float) -> dict[str, Any]:
    """Let another process hold the lock while a worker requests it; return the stamps of both."""
    with working(case, words, WAITER, folder, operations=1) as worker:
        with closing(sqlite3.connect(folder / "kv.db", isolation_level=None)) as connection:
            connection.execute("CREATE TABLE t (a)")
        with acting(holds, words, HOLDER, case.driver, folder / "kv.db") as holder:
            assert receive(holder) == "held"
            worker.send("go")
            time.sleep(0.01)
            holder.send(hold_s)
            return {"holder": receive(holder), "worker": receive(worker)}


def waited_by_worker(recording: TrialSpans) -> Span:
    """Return the worker's only long wait since its start.

    The worker may find a changed schema under the lock, release it and take it again: a second, brief wait.
    """
    waits = [wait_span for wait_span in recording.waits if wait_span.process == WAITER]
    (wait,) = (wait_span for wait_span in waits if wait_span.ns > BRIEF_NS)
    assert len(waits) <= 2
    return wait


@pytest.mark.parametrize("loop", mostly_thorough(LOOPS, ["native"]))
@pytest.mark.parametrize("driver", ["sqlite3", thorough("apsw")])
@pytest.mark.thorough
def test_either_loop_measures_a_known_hold_within_3_percent(
    words: Any, tmp_path: Path, loop: str, driver: str
) -> None:
    stamps = hold_during_a_write(case_of(loop, driver), words, tmp_path, HOLD_S)
    recording = TrialSpans(areas(words, 2))
    wait = waited_by_worker(recording)
    worker_stamps, holder_stamps = stamps["worker"], stamps["holder"]
    assert wait.ns == pytest.approx(worker_stamps["had"] - worker_stamps["asked"], rel=NEAR)
    held_ns = sum(span.end - span.begin for span in recording.blocked(wait))
    assert held_ns == pytest.approx(holder_stamps["ended"] - worker_stamps["asked"], rel=NEAR)
    assert not recording.contradiction()


@pytest.mark.parametrize("loop", mostly_thorough(LOOPS, ["python"]))
def test_operation_abandoned_by_either_loop_stops_waiting(words: Any, tmp_path: Path, loop: str) -> None:
    case = case_of(loop, busy_timeout_ms=150)
    worker_stamps = hold_during_a_write(case, words, tmp_path, HOLD_S)["worker"]
    assert worker_stamps["failed"] == 1
    recording = TrialSpans(areas(words, 2))
    wait = waited_by_worker(recording)
    assert worker_stamps["asked"] < wait.begin < wait.end < worker_stamps["had"]
    assert wait.ns > 100_000_000
    transactions = [
        span for span in recording.transactions if span.process == WAITER and span.end >= wait.end
    ]
    assert transactions[0].begin == wait.begin
    assert transactions[0].end == pytest.approx(wait.end, abs=NEAR * 1e8)
    assert SpanArea(words, WAITER, 2)[shim.PENDING] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("settings", [{"synchronous": "full"}, {"wal_autocheckpoint": 1}], ids=str)
def test_slow_syncs_and_checkpoints_are_measured_within_3_percent(
    words: Any, tmp_path: Path, loop: str, settings: dict[str, Any]
) -> None:
    case = case_of(loop, "apsw", **{"synchronous": "normal", **settings})
    with working(case, words, WAITER, tmp_path, operations=3, slow_sync_s=0.1) as worker:
        worker.send("go")
        truth = receive(worker)["synced_ns"]
    area = SpanArea(words, WAITER, 2)
    assert truth > 300_000_000
    assert area[shim.CHECKPOINTING] + area.syncing_ns == pytest.approx(truth, rel=NEAR)
    # A checkpoint syncs the database file. The disk may delay any other sync, too.
    assert (area[shim.CHECKPOINTING] > 100_000_000) == ("wal_autocheckpoint" in settings)
    assert area[shim.CHECKPOINTING] == 0 or "wal_autocheckpoint" in settings
