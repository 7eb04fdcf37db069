"""The store is broken on purpose, after a run or during one: the verdict says so, with an example."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sqlstress.engine.pool import Pool
from sqlstress.engine.protocols import Work
from sqlstress.engine.trial import outcomes, plan_window
from sqlstress.engine.values import Values
from sqlstress.experiments.kv.spec import Load
from sqlstress.report import Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.targets import open_place
from sqlstress.targets.sqlite import files
from tests.halves import open_work

KEYS = 120
SALT = 7
FAST = Settings(synchronous="off")
VALUES = Values(SALT, 8)


def nothing() -> None:
    pass


@dataclass
class Measured:
    """A trial whose window has closed and whose data has not been looked at."""

    case: Case
    folder: Path
    work: Work
    ended: list[object]

    def verdict(self) -> Verdict:
        return self.work.verify(outcomes(self.ended), nothing)  # type: ignore[arg-type]

    def paths(self) -> list[Path]:
        return files.paths(self.case, self.folder)

    def rows(self, bucket: int = 0) -> list[tuple[int, int]]:
        with closing(sqlite3.connect(self.paths()[bucket])) as connection:
            return connection.execute("SELECT key, value FROM kv ORDER BY key").fetchall()

    def execute(self, sql: str, params: tuple[object, ...] = (), bucket: int = 0) -> None:
        with closing(sqlite3.connect(self.paths()[bucket])) as connection, connection:
            assert connection.execute(sql, params).rowcount > 0


def measure(case: Case, folder: Path, during: Callable[[Pool], None] = lambda pool: None) -> Measured:
    work = open_work(case, folder, SALT, {})
    work.prepare(nothing)
    with Pool(case, open_place(case, folder), SALT, work.shared) as pool:
        pool.start(nothing)
        assert pool.wait_ready(60, nothing) == []
        work.connected()
        pool.go(plan_window(case, time.perf_counter_ns()))
        meddler = threading.Thread(target=during, args=(pool,))
        meddler.start()
        ended = pool.gather(60, nothing)
        meddler.join()
    return Measured(case, folder, work, list(ended))


def case_of(load: Load, concurrency: int = 2, buckets: int = 1, duration_s: float = 0.15) -> Case:
    return Case(
        concurrency=concurrency,
        buckets=buckets,
        duration_s=duration_s,
        warmup_s=0.05,
        settings=FAST,
        spec=load,
    )


PLAIN = Load(key_space=KEYS, read_ratio=0.2)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(case_of(PLAIN), tmp_path_factory.mktemp("original"))


@pytest.fixture
def measured(original: Measured) -> Iterator[Measured]:
    """The same measured trial for every test; what a test does to the rows is undone."""
    before = original.rows()
    yield original
    with closing(sqlite3.connect(original.paths()[0])) as connection, connection:
        connection.execute("DELETE FROM kv")
        connection.executemany("INSERT INTO kv VALUES (?, ?)", before)


def written_keys(measured: Measured) -> list[int]:
    return [key for key, value in measured.rows() if (stamp := VALUES.read(value)) and stamp.worker]


def assert_rejected(verdict: Verdict, check: str, *words: str) -> None:
    assert verdict.status == "failed"
    failed = {one.name: one for one in verdict.checks if one.status == "failed"}
    assert check in failed, failed
    told = " ".join(failed[check].counterexamples)
    assert failed[check].problems >= 1
    for word in words:
        assert word in told


def test_an_untouched_store_is_accepted(measured: Measured) -> None:
    verdict = measured.verdict()
    assert verdict.status == "ok", verdict
    assert {check.name: check.checked for check in verdict.checks}["last write"] == KEYS
    assert len(written_keys(measured)) > KEYS / 2


def test_a_dropped_acknowledged_write_is_named(measured: Measured) -> None:
    key = written_keys(measured)[5]
    stamp = VALUES.read(dict(measured.rows())[key])
    assert stamp
    older = VALUES.maker(stamp.worker)(stamp.sequence - 1)
    measured.execute("UPDATE kv SET value = ? WHERE key = ?", (older, key))
    assert_rejected(
        measured.verdict(),
        "last write",
        f"key {key} holds worker {stamp.worker}'s write {stamp.sequence - 1}",
    )


def test_a_value_of_another_trial_is_named(measured: Measured) -> None:
    key = written_keys(measured)[0]
    measured.execute("UPDATE kv SET value = ? WHERE key = ?", (Values(SALT + 1, 8).maker(1)(1), key))
    assert_rejected(measured.verdict(), "last write", f"key {key} holds a value that nobody wrote")


def test_every_single_restored_value_is_caught(measured: Measured) -> None:
    keys = written_keys(measured)
    for key in keys:
        measured.execute("UPDATE kv SET value = ? WHERE key = ?", (VALUES.maker(0)(key), key))
    failed = next(check for check in measured.verdict().checks if check.name == "last write")
    assert failed.problems == len(keys)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    done = measure(case_of(PLAIN, buckets=3), tmp_path)
    done.paths()[1].unlink()
    assert_rejected(done.verdict(), "quick_check", "kv_1.db: the file is gone")


def test_a_key_in_the_wrong_bucket_is_named(tmp_path: Path) -> None:
    done = measure(case_of(PLAIN, buckets=3), tmp_path)
    key, value = done.rows(0)[0]
    done.execute("DELETE FROM kv WHERE key = ?", (key,), bucket=0)
    done.execute("INSERT INTO kv VALUES (?, ?)", (key, value), bucket=1)
    assert_rejected(done.verdict(), "last write", f"{key} (which does not belong into kv_1.db)")


UPDATES = Load(key_space=KEYS, read_ratio=0.2, update_ratio=0.6)


@pytest.mark.parametrize("begin", ["immediate", "deferred"])
def test_counters_that_nobody_touched_are_accepted(tmp_path: Path, begin: str) -> None:
    done = measure(case_of(Load(key_space=KEYS, update_ratio=0.5, begin=begin)), tmp_path)
    checks = {check.name: check for check in done.verdict().checks}
    assert checks["lost updates"].status == "ok", checks
    assert done.verdict().status == "ok"


def test_a_lost_update_is_counted(tmp_path: Path) -> None:
    done = measure(case_of(UPDATES), tmp_path)
    done.execute("UPDATE counter SET n = n - 1 WHERE id = 3")
    assert_rejected(done.verdict(), "lost updates", "kv.db:3 is ")


def test_an_update_too_many_is_counted(tmp_path: Path) -> None:
    done = measure(case_of(UPDATES), tmp_path)
    done.execute("UPDATE counter SET n = n + 1 WHERE id = 3")
    assert_rejected(done.verdict(), "lost updates", "1 more than was acknowledged")


BATCHES = Load(key_space=KEYS, read_ratio=0.6, batch=5)


@pytest.mark.parametrize("buckets", [1, 3])
def test_whole_batches_are_accepted(tmp_path: Path, buckets: int) -> None:
    done = measure(case_of(BATCHES, buckets=buckets), tmp_path)
    checks = {check.name: check for check in done.verdict().checks}
    assert checks["torn transactions"].checked > 0
    assert done.verdict().status == "ok", checks


def test_a_torn_batch_is_caught_while_it_runs(tmp_path: Path) -> None:
    case = case_of(BATCHES, duration_s=0.6)

    def tear(_pool: Pool) -> None:
        chooser = random.Random(1)
        until = time.monotonic() + 0.7
        with closing(sqlite3.connect(tmp_path / "kv.db", timeout=10, isolation_level=None)) as connection:
            while time.monotonic() < until:
                # The second half of a transaction never came: one key of a pair keeps its old value.
                key = chooser.randrange(KEYS // 2) * 2
                connection.execute("UPDATE kv SET value = ? WHERE key = ?", (VALUES.maker(0)(key), key))

    assert_rejected(measure(case, tmp_path, tear).verdict(), "torn transactions", "a snapshot of a pair")


def test_a_foreign_value_is_caught_when_it_is_read(tmp_path: Path) -> None:
    case = case_of(Load(key_space=KEYS, read_ratio=0.9), duration_s=0.4)

    def meddle(_pool: Pool) -> None:
        until = time.monotonic() + 0.5
        with closing(sqlite3.connect(tmp_path / "kv.db", timeout=10, isolation_level=None)) as connection:
            while time.monotonic() < until:
                connection.execute("UPDATE kv SET value = 42 WHERE key = 3")

    assert_rejected(
        measure(case, tmp_path, meddle).verdict(), "values read", "a get of key 3 read the value 42"
    )


@pytest.mark.parametrize("load", [PLAIN, BATCHES, UPDATES], ids=["replaces", "batches", "updates"])
def test_what_a_killed_worker_was_told_still_counts(tmp_path: Path, load: Load) -> None:
    # So many keys that the others don't overwrite all of them before the window closes.
    # Fair waits, so that each worker gets to write at all.
    case = case_of(replace(load, key_space=20_000), concurrency=3, duration_s=0.5)
    case = replace(case, settings=replace(FAST, busy="fair"))

    def kill(pool: Pool) -> None:
        time.sleep(0.3)
        pool._processes[1].kill()

    done = measure(case, tmp_path, kill)
    assert [one.worker for one in outcomes(done.ended) if one.died] == [2]  # type: ignore[arg-type]
    verdict = done.verdict()
    assert verdict.status == "ok", verdict.counterexamples
    # …and what it wrote is held against the store.
    lost = [key for key, value in done.rows() if (stamp := VALUES.read(value)) and stamp.worker == 2]
    assert lost
    done.execute("UPDATE kv SET value = ? WHERE key = ?", (VALUES.maker(0)(lost[0]), lost[0]))
    assert_rejected(done.verdict(), "last write", f"key {lost[0]} ")


def test_the_published_script_leaves_what_it_was_told(tmp_path: Path) -> None:
    case = Case(
        workload="classic",
        concurrency=2,
        ops=300,
        warmup_s=0,
        settings=Settings(synchronous="off"),
        spec=Load(key_space=(1 << 31) + 1, begin="deferred"),
    )
    carry: dict[object, object] = {}
    for salt in (SALT, SALT + 1):
        work = open_work(case, tmp_path, salt, carry)
        work.prepare(nothing)
        with Pool(case, open_place(case, tmp_path), salt, work.shared) as pool:
            pool.start(nothing)
            pool.go(plan_window(case, time.perf_counter_ns()))
            assert pool.wait_ready(60, nothing) == []
            ended = pool.gather(60, nothing)
        assert work.verify(outcomes(ended), nothing).status == "ok"
    with closing(sqlite3.connect(tmp_path / "kv.db")) as connection, connection:
        (key,) = connection.execute(
            "SELECT key FROM kv WHERE value >> 48 = ? LIMIT 1", (VALUES.salt,)
        ).fetchone()
        connection.execute("UPDATE kv SET value = value + 1 WHERE key = ?", (key,))
    assert_rejected(work.verify(outcomes(ended), nothing), "last write", f"key {key} ")
