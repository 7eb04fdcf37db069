"""The store is broken on purpose, after a run or during one: the verdict fails with an example."""

import random
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.values import Values
from sqlstress.experiments.kv.spec import Load
from tests.experiments.kv.loops import (
    FAST,
    FOREVER_S,
    KEYS,
    case_of,
    killing_a_writer,
    meddling,
    take_back_one,
)
from tests.experiments.measured import SALT, measure, rejected
from tests.rows import thorough

VALUES = Values(SALT, 8)


PLAIN = Load(key_space=KEYS, read_ratio=0.2)


def test_key_in_the_wrong_bucket_is_reported(tmp_path: Path) -> None:
    # Each process does a fixed amount of work, however late it begins.
    case = case_of(PLAIN, concurrency=2, buckets=3, ops=4 * KEYS, duration_s=0.0, warmup_s=0.0)
    done = measure(case, tmp_path)
    key, value = done.rows("SELECT key, value FROM kv ORDER BY key", bucket=0)[0]
    done.execute("DELETE FROM kv WHERE key = ?", key, bucket=0)
    done.execute("INSERT INTO kv VALUES (?, ?)", key, value, bucket=1)
    rejected(done.verdict(), "last write", f"{key} (which does not belong into kv_1.db)")


UPDATES = Load(key_space=KEYS, read_ratio=0.2, update_ratio=0.6)
BATCHES = Load(key_space=KEYS, read_ratio=0.6, batch=5)


@pytest.mark.thorough
def test_torn_batch_is_caught_during_the_load(tmp_path: Path) -> None:
    case = case_of(BATCHES, concurrency=2, duration_s=1.2)

    chooser = random.Random(1)

    def tear(connection: sqlite3.Connection) -> None:
        # The second half of a transaction is missing: one key of a pair keeps its old value.
        key = chooser.randrange(KEYS // 2) * 2
        connection.execute("UPDATE kv SET value = ? WHERE key = ?", (VALUES.maker(0)(key), key))

    rejected(
        measure(case, tmp_path, meddling(tmp_path, 0.7, tear)).verdict(),
        "torn transactions",
        "a snapshot of a pair",
    )


@pytest.mark.thorough
def test_foreign_value_is_caught_when_it_is_read(tmp_path: Path) -> None:
    case = case_of(Load(key_space=KEYS, read_ratio=0.9), concurrency=2, duration_s=0.25)

    def meddle(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE kv SET value = 42 WHERE key = 3")

    verdict = measure(case, tmp_path, meddling(tmp_path, 0.35, meddle)).verdict()
    rejected(verdict, "values read", "a get of key 3 read the value 42")


@pytest.mark.parametrize(
    "load",
    [thorough(PLAIN, id="replaces"), thorough(BATCHES, id="batches"), pytest.param(UPDATES, id="updates")],
)
def test_acknowledged_writes_of_a_killed_worker_still_count(tmp_path: Path, load: Load) -> None:
    case = case_of(replace(load, key_space=20_000), concurrency=3, duration_s=FOREVER_S, settings=FAST)
    done = measure(case, tmp_path, killing_a_writer(tmp_path))
    assert [outcome.worker for outcome in done.outcomes if outcome.died] == [2]
    verdict = done.verdict()
    assert verdict.status == "ok", verdict.counterexamples
    take_back_one(done)
