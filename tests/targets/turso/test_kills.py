"""A worker that is killed at any moment: what it was told is proven by SQLite, and what is gone is found."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.mutations import trial
from benchmarks.mutations.trial import Worked, work_on
from sqlstress.engine.pool import Pool
from sqlstress.engine.summary import outcomes
from sqlstress.experiments.kv.experiment import Load
from sqlstress.report.case import Case, Settings
from tests.pulses import nothing
from tests.rows import mostly_thorough

CASE = Case(
    driver="turso",
    concurrency=1,
    duration_s=0.3,
    warmup_s=0.05,
    settings=Settings(synchronous="normal"),
    spec=Load(key_space=200, read_ratio=0.2, update_ratio=0.3, batch=4),
)
COUNTED = replace(CASE, ops=300, warmup_s=0.0, spec=replace(CASE.spec, batch=1))
LONG = replace(CASE, duration_s=60.0, settings=Settings(synchronous="full"))
SOME_FRAMES = 100 * (4096 + 24)


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("turso")
    monkeypatch.setattr(trial, "READY_S", 20.0)


def told(done: Worked) -> dict[str, str]:
    """Return what each check says."""
    verdict = done.work.verify(outcomes(done.ended), nothing)
    return {check.name: check.status for check in verdict.checks}


@pytest.mark.parametrize("seed", mostly_thorough(range(1, 12), (1,)))
@pytest.mark.parametrize("level", mostly_thorough(("off", "normal", "full"), ("normal",)))
def test_what_a_killed_worker_was_told_is_there(tmp_path: Path, seed: int, level: str) -> None:
    case = replace(CASE, settings=replace(CASE.settings, synchronous=level))

    def kill(pool: Pool) -> None:
        time.sleep(0.35 * Random(seed).random())
        pool._processes[0].kill()

    done = work_on(case, tmp_path, 7, {}, kill)
    assert not done.ended[0].done
    assert told(done) == {
        "values read": "skipped",  # what it had read is gone with it
        "quick_check": "ok",
        "schema": "ok",
        "last write": "ok",
        "lost updates": "ok",
    }


def test_a_log_that_is_gone_with_what_was_acknowledged_is_found(tmp_path: Path) -> None:
    wal = tmp_path / "kv.db-wal"

    def kill(pool: Pool) -> None:
        deadline = time.monotonic() + trial.READY_S
        while wal.stat().st_size < SOME_FRAMES and time.monotonic() < deadline:
            time.sleep(0.001)
        pool._processes[0].kill()

    done = work_on(LONG, tmp_path, 7, {}, kill)
    wal.unlink()
    found = told(done)
    assert found["quick_check"] == "ok"
    assert (found["last write"], found["lost updates"]) == ("failed", "failed")


def test_an_acknowledged_write_that_is_taken_back_or_gone_is_found(tmp_path: Path) -> None:
    done = work_on(COUNTED, tmp_path, 7, {}, lambda pool: None)
    preloaded = done.work.values.maker(0)  # type: ignore[attr-defined]
    with closing(sqlite3.connect(tmp_path / "kv.db")) as connection, connection:
        rows = connection.execute("SELECT key, value FROM kv ORDER BY key").fetchall()
        taken = next(key for key, value in rows if value != preloaded(key))
        gone = next(key for key, _ in rows if key != taken)
        connection.execute("UPDATE kv SET value = ? WHERE key = ?", (preloaded(taken), taken))
        connection.execute("DELETE FROM kv WHERE key = ?", (gone,))
        connection.execute("UPDATE counter SET n = n - 1 WHERE id = 0")
    verdict = done.work.verify(outcomes(done.ended), nothing)
    failed = {check.name: check.counterexamples for check in verdict.checks if check.status == "failed"}
    assert set(failed) == {"last write", "lost updates"}
    assert f"key {gone} is gone" in failed["last write"]
    assert any(text.startswith(f"key {taken} ") for text in failed["last write"])
    assert failed["lost updates"][0].startswith("counter kv.db:0 is ")
