"""Either loop tells of its locks, syncs and checkpoints as long as they were, and of what it gave up."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.kv.experiment import LOOPS, Load
from sqlstress.report.case import Case, Settings
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite import where_recording
from sqlstress.targets.sqlite.connections import lacks
from sqlstress.targets.sqlite.where import Seen, Wait
from sqlstress.targets.sqlite.where_recording import Area, areas, size
from tests.rows import mostly_thorough, thorough
from tests.targets.where.actors import acting, heard, holds
from tests.targets.where.working import working

WORKER, HOLDER = 1, 2
HOLD_S = 0.444
NEAR = 0.03
BRIEF_NS = 50_000_000

pytestmark = pytest.mark.skipif(lacks("sqlite3") is not None, reason=f"{lacks('sqlite3')}")


@pytest.fixture
def words() -> Any:
    return shared_array("q", size(2))


def case_of(loop: str, driver: str = "sqlite3", **settings: Any) -> Case:
    load = Load(read_ratio=0.0, key_space=50, loop=loop, where=True)
    own = Settings(**{"synchronous": "off", **settings})
    return Case(driver=driver, concurrency=1, settings=own, warmup_s=0.0, ops=1, spec=load)


def held_while_one_writes(case: Case, words: Any, folder: Path, hold_s: float) -> dict[str, Any]:
    """Let another process hold the lock while a worker asks for it; return what each of the two said."""
    with working(case, words, WORKER, folder, operations=1) as worker:
        with closing(sqlite3.connect(folder / "kv.db", isolation_level=None)) as connection:
            connection.execute("CREATE TABLE t (a)")
        with acting(holds, words, HOLDER, case.driver, folder / "kv.db") as holder:
            assert heard(holder) == "held"
            worker.send("go")
            time.sleep(0.01)
            holder.send(hold_s)
            return {"holder": heard(holder), "worker": heard(worker)}


def waited(seen: Seen) -> Wait:
    """Return the worker's only wait since it was told to begin.

    It may meet a changed schema with the lock, give it back, and obtain it again: a second one, and brief.
    """
    waits = [one for one in seen.waits if one.span.process == WORKER]
    (wait,) = (one for one in waits if one.span.end - one.span.begin > BRIEF_NS)
    assert len(waits) <= 2
    return wait


@pytest.mark.parametrize("loop", mostly_thorough(LOOPS, ["native"]))
@pytest.mark.parametrize("busy", ["default", "fair"])
@pytest.mark.parametrize("driver", ["sqlite3", thorough("apsw")])
def test_a_lock_held_for_a_known_time_is_found_within_3_percent(
    words: Any, tmp_path: Path, loop: str, busy: str, driver: str
) -> None:
    told = held_while_one_writes(case_of(loop, driver, busy=busy), words, tmp_path, HOLD_S)
    seen = Seen(areas(words, 2))
    wait = waited(seen)
    of_worker, of_holder = told["worker"], told["holder"]
    assert wait.span.end - wait.span.begin == pytest.approx(of_worker["had"] - of_worker["asked"], rel=NEAR)
    held = sum(one.end - one.begin for one in seen.blocked(wait))
    assert held == pytest.approx(of_holder["ended"] - of_worker["asked"], rel=NEAR)
    assert not seen.contradiction()


@pytest.mark.thorough
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("busy", ["default", "fair"])
def test_an_operation_that_is_given_up_waits_no_longer(
    words: Any, tmp_path: Path, loop: str, busy: str
) -> None:
    case = case_of(loop, busy=busy, busy_timeout_ms=150)
    of_worker = held_while_one_writes(case, words, tmp_path, HOLD_S)["worker"]
    assert of_worker["failed"] == 1
    wait = waited(Seen(areas(words, 2)))
    assert of_worker["asked"] < wait.span.begin < wait.span.end < of_worker["had"]
    assert wait.span.end - wait.span.begin > 100_000_000
    assert Area(words, WORKER, 2)[where_recording.PENDING] == 0


@pytest.mark.parametrize("loop", mostly_thorough(LOOPS, ["native"]))
def test_slow_syncs_are_found_within_3_percent(words: Any, tmp_path: Path, loop: str) -> None:
    case = case_of(loop, "apsw", synchronous="full")
    with working(case, words, WORKER, tmp_path, operations=3, slow_sync_s=0.1) as worker:
        worker.send("go")
        truth = heard(worker)["synced_ns"]
    own = Area(words, WORKER, 2)
    assert truth > 300_000_000
    assert own.syncing_ns == pytest.approx(truth, rel=NEAR)
    assert own[where_recording.CHECKPOINTING] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("loop", LOOPS)
def test_slow_checkpoints_are_found_within_3_percent(words: Any, tmp_path: Path, loop: str) -> None:
    case = case_of(loop, "apsw", synchronous="normal", wal_autocheckpoint=1)
    with working(case, words, WORKER, tmp_path, operations=2, slow_sync_s=0.1) as worker:
        worker.send("go")
        truth = heard(worker)["synced_ns"]
    own = Area(words, WORKER, 2)
    assert truth > 200_000_000
    assert own[where_recording.CHECKPOINTING] + own.syncing_ns == pytest.approx(truth, rel=NEAR)
    assert own[where_recording.CHECKPOINTING] > 0.4 * truth
