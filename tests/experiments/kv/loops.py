"""Tests that both loops must pass on every store: loads, remaining data, a kill during a load."""

import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlstress.engine.pool import Pool
from sqlstress.engine.values import Values
from sqlstress.engine.worker import SLOT_WORDS, STOP
from sqlstress.experiments.kv.acks import area_of
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from tests.experiments.kv.dry import GET, PAIR, REPLACE, SALT, UPDATE
from tests.experiments.measured import Measured, rejected, wait_for

LOOPS = ("native", "python")
FAST = Settings(synchronous="off")
KEYS = 120
SO_FEW = 8
"""Number of operations in the first chunk: both loops draw them at once, at any speed."""
CONTENTS = [
    Load(key_space=KEYS),
    Load(key_space=KEYS, key_type="text", value_size=100, read_ratio=0.3),
    Load(key_space=KEYS, key_type="blob", value_size=9000, read_ratio=0.0, distribution="zipfian"),
    Load(key_space=KEYS, batch=5, read_ratio=0.4, update_ratio=0.3, begin="deferred"),
    Load(key_space=KEYS, batch=2, read_ratio=0.1, distribution="sequential", value_size=9),
    Load(key_space=KEYS, update_ratio=0.8, read_ratio=0.1),
]
KILLED = [
    Load(key_space=KEYS, read_ratio=0.2),
    Load(key_space=KEYS, read_ratio=0.1, batch=5, update_ratio=0.4),
]


def case_of(load: Load, **more: Any) -> Case:
    """Return a case without syncs, with a short window unless `more` sets it."""
    return Case(**{"settings": FAST, "warmup_s": 0.05, "duration_s": 0.15, "spec": load, **more})


def first_worker_results(done: Measured) -> tuple[Any, ...]:
    """Return the first worker's acknowledged writes and its counts."""
    area, totals = area_of(done.case, done.work.shared[0], 1), done.ended[0].done.totals  # type: ignore[union-attr]
    acknowledged = area.sequences.tolist(), area.counts.tolist(), area.meta[0]
    return *acknowledged, totals.operations, totals.rows, sum(totals.bins)


def check_counts(done: Measured) -> None:
    """Check that the workers' counts add up, and that at least one worker did anything."""
    rows = {GET: 1, UPDATE: 1, PAIR: 2, REPLACE: done.case.spec.batch}
    worked = [ended.done for ended in done.ended if ended.done and ended.done.totals.operations]
    assert worked  # the other workers may not have got the lock
    assert [ended.reason for ended in done.ended] == [None] * len(done.ended)
    for worker in worked:
        totals, findings = worker.totals, worker.findings
        assert totals.operations == {kind: sum(own.values()) for kind, own in totals.buckets.items()}
        assert sum(totals.bins) == sum(totals.operations.values())
        assert totals.longest_wait_ns >= max(totals.largest_ns.values())
        assert totals.rows == sum(count * rows[kind] for kind, count in totals.operations.items())
        assert findings.reads_checked >= totals.operations.get(GET, 0)
        assert findings.pairs_checked >= totals.operations.get(PAIR, 0)
        assert 0 <= totals.proof_ns <= totals.harness_ns
    # A worker whose chunk outlasts the window, because it waits for the others, counts none of its own time.
    assert any(worker.totals.proof_ns for worker in worked)


def killing(seed: int) -> Callable[[Pool], None]:
    """Return a function that kills the second worker at a random moment of its first 0.3 s."""

    def kill(pool: Pool) -> None:
        while not pool._words[2 * SLOT_WORDS] and pool._processes[1].is_alive():
            time.sleep(0.001)
        time.sleep(random.Random(seed).uniform(0, 0.3))
        pool._processes[1].kill()

    return kill


SEVERAL = 50
"""Number of rows, more than one transaction writes."""


def wrote(folder: Path, worker: int) -> bool:
    """Return whether the store has values of several transactions of a worker, while others write to it."""
    with closing(sqlite3.connect(folder / "kv.db", timeout=10)) as connection:
        values = [value for (value,) in connection.execute("SELECT value FROM kv")]
    stamps = map(Values(SALT, 8).read, values)
    return sum(stamp is not None and stamp.worker == worker for stamp in stamps) >= SEVERAL


FOREVER_S = 60.0
"""A window that no worker reaches the end of."""


def killing_a_writer(folder: Path) -> Callable[[Pool], None]:
    """Return a function that kills the second worker once it has written, and stops the others: they write
    over its rows.
    """

    def kill(pool: Pool) -> None:
        wait_for(lambda: wrote(folder, 2))
        pool._processes[1].kill()
        pool._words[STOP] = 1

    return kill


def meddling(
    folder: Path, seconds: float, change: Callable[[sqlite3.Connection], None]
) -> Callable[[Pool], None]:
    """Return a function that changes the database over and over, for `seconds`."""

    def meddle(_pool: Pool) -> None:
        until = time.monotonic() + seconds
        with closing(sqlite3.connect(folder / "kv.db", timeout=10, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = off")
            while time.monotonic() < until:
                change(connection)

    return meddle


def take_back_one(done: Measured) -> None:
    """Revert a write of the second worker, which was killed: the verdict must blame the store."""
    values, rows = Values(SALT, 8), done.rows("SELECT key, value FROM kv")
    written = [
        (stamp.sequence, key) for key, value in rows if (stamp := values.read(value)) and stamp.worker == 2
    ]
    # The last write may be in doubt: the worker was killed before its acknowledgement.
    _, lost = min(written)
    done.execute("UPDATE kv SET value = ? WHERE key = ?", values.maker(0)(lost), lost)
    rejected(done.verdict(), "last write", f"key {lost} ")
