"""What was done to the lock on purpose, and for how long, is what is found: of either loop, too."""

from __future__ import annotations

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
from sqlstress.targets.sqlite.connections import lacks
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.shim import Area, Span, areas, size
from sqlstress.targets.sqlite.where import Blocked, Seen
from tests.rows import mostly_thorough, thorough
from tests.targets.where.actors import (
    acting,
    checkpoints,
    heard,
    hides_the_index,
    holds,
    meets_a_newer_snapshot,
    opens,
    waits,
    working,
)

WAITER, HOLDER = 1, 2
HOLD_S = 0.444
NEAR = 0.03
BRIEF_NS = 50_000_000

pytestmark = pytest.mark.skipif(lacks("sqlite3") is not None, reason=f"{lacks('sqlite3')}")


@pytest.fixture
def words() -> Any:
    return shared_array("q", size(2))


def created(path: Path, journal: str) -> Path:
    connection = load_driver("sqlite3").connect(path, 1000)
    connection.rows(f"PRAGMA journal_mode={journal}")
    connection.rows("CREATE TABLE t (a)")
    connection.close()
    return path


def total(blocked: list[Blocked], what: str, process: int = HOLDER) -> int:
    return sum(one.end - one.begin for one in blocked if (one.process, one.what) == (process, what))


def waited(seen: Seen) -> Span:
    """Return the one wait of the waiter."""
    (wait,) = (one for one in seen.waits if one.process == WAITER)
    return wait


@pytest.mark.parametrize("driver", ["sqlite3", thorough("apsw")])
@pytest.mark.parametrize("journal", ["wal", thorough("delete"), thorough("truncate")])
@pytest.mark.thorough
def test_a_lock_held_for_a_known_time_is_found_within_3_percent(
    words: Any, tmp_path: Path, driver: str, journal: str
) -> None:
    path = created(tmp_path / "a.db", journal)
    with (
        acting(waits, words, WAITER, driver, path) as waiter,
        acting(holds, words, HOLDER, driver, path) as holder,
    ):
        assert (heard(waiter), heard(holder)) == ("ready", "held")
        waiter.send("go")
        time.sleep(0.01)
        holder.send(HOLD_S)
        of_holder, of_waiter = heard(holder), heard(waiter)
    seen = Seen(areas(words, 2))
    wait = waited(seen)
    blocked = list(seen.blocked(wait))
    truth = of_holder["ended"] - of_waiter["asked"]
    commit = of_holder["ended"] - of_holder["freed"]
    assert wait.ns == pytest.approx(of_waiter["had"] - of_waiter["asked"], rel=NEAR)
    found = sum(one.end - one.begin for one in blocked)
    assert truth - commit - NEAR * truth <= found <= truth * (1 + NEAR)
    # Until it was freed nothing but a transaction under way can have kept it.
    assert total(blocked, COMMIT) >= (of_holder["freed"] - of_waiter["asked"]) * (1 - NEAR)
    assert {one.process for one in blocked} == {HOLDER}
    assert not seen.contradiction()


@pytest.mark.parametrize("journal", ["wal", thorough("truncate")])
@pytest.mark.thorough
def test_a_slow_sync_of_the_holder_is_what_is_waited_for(words: Any, tmp_path: Path, journal: str) -> None:
    path = created(tmp_path / "a.db", journal)
    with (
        acting(waits, words, WAITER, "sqlite3", path) as waiter,
        acting(holds, words, HOLDER, "apsw", path, slow_sync_s=0.2) as holder,
    ):
        assert (heard(waiter), heard(holder)) == ("ready", "held")
        holder.send(0.0)
        waiter.send("go")
        truth = heard(holder)["synced_ns"]
        heard(waiter)
    seen = Seen(areas(words, 2))
    blocked = list(seen.blocked(waited(seen)))
    assert total(blocked, SYNC) >= 0.8 * sum(one.end - one.begin for one in blocked)
    assert Area(words, HOLDER, 2).syncing_ns == pytest.approx(truth, rel=NEAR)


def test_a_checkpoint_is_told_with_the_process_that_made_it(words: Any, tmp_path: Path) -> None:
    path = created(tmp_path / "a.db", "wal")
    with (
        acting(waits, words, WAITER, "sqlite3", path) as waiter,
        acting(checkpoints, words, HOLDER, "apsw", path, slow_sync_s=0.15) as holder,
    ):
        assert (heard(waiter), heard(holder)) == ("ready", "held")
        holder.send("go")
        time.sleep(0.05)  # its first sync lasts longer
        waiter.send("go")
        of_holder, of_waiter = heard(holder), heard(waiter)
    seen = Seen(areas(words, 2))
    blocked = list(seen.blocked(waited(seen)))
    truth = of_holder["ended"] - of_waiter["asked"]
    assert total(blocked, CHECKPOINT) == pytest.approx(truth, rel=NEAR)
    assert {one.what for one in blocked} == {CHECKPOINT}


@pytest.mark.parametrize("driver", ["sqlite3", thorough("apsw")])
def test_who_had_to_wait_to_open_a_wal_waits_no_longer_once_it_is_open(
    words: Any, tmp_path: Path, driver: str
) -> None:
    path = created(tmp_path / "a.db", "wal")
    with acting(hides_the_index, words, HOLDER, driver, path) as holder:
        assert heard(holder) == "held"
        with acting(opens, words, WAITER, driver, path) as waiter:
            assert heard(waiter) == "ready"
            time.sleep(0.1)
            holder.send("go")
            heard(holder)
            assert (heard(waiter), heard(waiter)) == ("read", "ready")
            assert Area(words, WAITER, 2)[shim.PENDING] == 0
            with acting(holds, words, HOLDER, driver, path) as second:
                assert heard(second) == "held"
                waiter.send("go")
                second.send(0.1)
                heard(second)
                asked = heard(waiter)["asked"]
    assert waited(Seen(areas(words, 2))).begin > asked


def test_who_gives_the_lock_back_and_does_not_ask_again_does_not_wait(words: Any, tmp_path: Path) -> None:
    path = created(tmp_path / "a.db", "wal")
    with acting(meets_a_newer_snapshot, words, WAITER, "sqlite3", path) as waiter:
        assert heard(waiter) == "read"
        connection = load_driver("sqlite3").connect(path, 1000)
        connection.rows("INSERT INTO t VALUES (2)")
        connection.close()
        waiter.send("go")
        heard(waiter)
    seen = Seen(areas(words, 2))
    assert not seen.waits and Area(words, WAITER, 2)[shim.PENDING] == 0
    assert len([one for one in seen.transactions if one.ns < 40_000_000]) >= 2


def test_a_checkpoint_that_may_not_begin_leaves_no_wait_behind(words: Any, tmp_path: Path) -> None:
    path = created(tmp_path / "a.db", "wal")
    with acting(checkpoints, words, WAITER, "sqlite3", path) as waiter:
        assert heard(waiter) == "held"
        with acting(holds, words, HOLDER, "sqlite3", path) as holder:
            assert heard(holder) == "held"
            waiter.send("go")
            time.sleep(0.05)
            holder.send(0.1)
            heard(holder)
        heard(waiter)
    assert Area(words, WAITER, 2)[shim.PENDING] == 0
    assert not [one for one in Seen(areas(words, 2)).waits if one.process == WAITER]


# The same of workers, driven by either loop.


def case_of(loop: str, driver: str = "sqlite3", **settings: Any) -> Case:
    load = Load(read_ratio=0.0, key_space=50, loop=loop, where=True)
    own = Settings(**{"synchronous": "off", **settings})
    return Case(driver=driver, concurrency=1, settings=own, warmup_s=0.0, ops=1, spec=load)


def held_while_one_writes(case: Case, words: Any, folder: Path, hold_s: float) -> dict[str, Any]:
    """Let another process hold the lock while a worker asks for it; return what each of the two said."""
    with working(case, words, WAITER, folder, operations=1) as worker:
        with closing(sqlite3.connect(folder / "kv.db", isolation_level=None)) as connection:
            connection.execute("CREATE TABLE t (a)")
        with acting(holds, words, HOLDER, case.driver, folder / "kv.db") as holder:
            assert heard(holder) == "held"
            worker.send("go")
            time.sleep(0.01)
            holder.send(hold_s)
            return {"holder": heard(holder), "worker": heard(worker)}


def waited_by_worker(seen: Seen) -> Span:
    """Return the worker's only wait since it was told to begin.

    It may meet a changed schema with the lock, give it back, and obtain it again: a second one, and brief.
    """
    waits = [one for one in seen.waits if one.process == WAITER]
    (wait,) = (one for one in waits if one.ns > BRIEF_NS)
    assert len(waits) <= 2
    return wait


@pytest.mark.parametrize("loop", mostly_thorough(LOOPS, ["native"]))
@pytest.mark.parametrize("driver", ["sqlite3", thorough("apsw")])
@pytest.mark.thorough
def test_either_loop_finds_a_lock_held_for_a_known_time_within_3_percent(
    words: Any, tmp_path: Path, loop: str, driver: str
) -> None:
    told = held_while_one_writes(case_of(loop, driver), words, tmp_path, HOLD_S)
    seen = Seen(areas(words, 2))
    wait = waited_by_worker(seen)
    of_worker, of_holder = told["worker"], told["holder"]
    assert wait.ns == pytest.approx(of_worker["had"] - of_worker["asked"], rel=NEAR)
    held = sum(one.end - one.begin for one in seen.blocked(wait))
    assert held == pytest.approx(of_holder["ended"] - of_worker["asked"], rel=NEAR)
    assert not seen.contradiction()


@pytest.mark.parametrize("loop", mostly_thorough(LOOPS, ["python"]))
def test_an_operation_that_either_loop_gives_up_waits_no_longer(
    words: Any, tmp_path: Path, loop: str
) -> None:
    case = case_of(loop, busy_timeout_ms=150)
    of_worker = held_while_one_writes(case, words, tmp_path, HOLD_S)["worker"]
    assert of_worker["failed"] == 1
    seen = Seen(areas(words, 2))
    wait = waited_by_worker(seen)
    assert of_worker["asked"] < wait.begin < wait.end < of_worker["had"]
    assert wait.ns > 100_000_000
    own = [one for one in seen.transactions if one.process == WAITER and one.end >= wait.end]
    assert own[0].begin == wait.begin
    assert own[0].end == pytest.approx(wait.end, abs=NEAR * 1e8)
    assert Area(words, WAITER, 2)[shim.PENDING] == 0


@pytest.mark.parametrize("loop", mostly_thorough(LOOPS, ["native"]))
@pytest.mark.thorough
def test_slow_syncs_are_found_within_3_percent(words: Any, tmp_path: Path, loop: str) -> None:
    case = case_of(loop, "apsw", synchronous="full")
    with working(case, words, WAITER, tmp_path, operations=3, slow_sync_s=0.1) as worker:
        worker.send("go")
        truth = heard(worker)["synced_ns"]
    own = Area(words, WAITER, 2)
    assert truth > 300_000_000
    assert own.syncing_ns == pytest.approx(truth, rel=NEAR)
    assert own[shim.CHECKPOINTING] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("loop", LOOPS)
def test_slow_checkpoints_are_found_within_3_percent(words: Any, tmp_path: Path, loop: str) -> None:
    case = case_of(loop, "apsw", synchronous="normal", wal_autocheckpoint=1)
    with working(case, words, WAITER, tmp_path, operations=2, slow_sync_s=0.1) as worker:
        worker.send("go")
        truth = heard(worker)["synced_ns"]
    own = Area(words, WAITER, 2)
    assert truth > 200_000_000
    assert own[shim.CHECKPOINTING] + own.syncing_ns == pytest.approx(truth, rel=NEAR)
    assert own[shim.CHECKPOINTING] > 0.4 * truth
