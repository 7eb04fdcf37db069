"""C finds all rows right only where they are; else each row is looked at, and what is wrong is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.values import Values
from sqlstress.experiments.kv.experiment import Load
from sqlstress.experiments.kv.keys import Key, encoder
from sqlstress.experiments.kv.work import KeyValueWork
from sqlstress.report.case import Case, Settings
from sqlstress.targets.native import extension, lacking
from tests.experiments.measured import SALT, Measured, measure, rejected
from tests.rows import thorough

pytestmark = pytest.mark.skipif(lacking(extension) is not None, reason="nothing was built here")
KEYS = 60
LOAD = Load(key_space=KEYS, read_ratio=0.2, loop="native")


def case_of(load: Load) -> Case:
    """Return a case in which both processes write nearly every key."""
    fast = Settings(synchronous="off")
    return Case(
        concurrency=2, buckets=3, ops=4 * KEYS, duration_s=0.0, warmup_s=0.0, settings=fast, spec=load
    )


LOADS = [
    pytest.param(LOAD, id="int"),
    pytest.param(replace(LOAD, key_type="text", value_size=9), id="text"),
    pytest.param(replace(LOAD, key_type="blob", value_size=300), id="blob"),
    thorough(replace(LOAD, batch=3, update_ratio=0.1), id="transactions"),
]


@pytest.mark.parametrize("load", LOADS)
def test_rows_that_are_right_are_looked_at_in_c_only(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = measure(case_of(load), tmp_path)
    monkeypatch.setattr(KeyValueWork, "check_keys", None)
    assert {one.name: (one.status, one.checked) for one in measured.verdict().checks}["last write"] == (
        "ok",
        KEYS,
    )


def of_bucket(done: Measured, written: bool) -> tuple[Any, Any]:
    """Return a row of the first bucket that a worker has written, or none has."""
    values = Values(SALT, done.case.spec.value_size)
    rows = done.rows("SELECT key, value FROM kv ORDER BY key")
    key, value = next(row for row in rows if bool((stamp := values.read(row[1])) and stamp.worker) == written)
    return key, value


def changed(done: Measured, value: Any, key: Any) -> None:
    done.execute("UPDATE kv SET value = ? WHERE key = ?", value, key)


def number_of(key: Key, load: Load) -> int:
    return next(number for number in range(KEYS) if encoder(load.key_type)(number) == key)


def preload_again(done: Measured) -> None:
    key, _ = of_bucket(done, written=True)
    load = done.case.spec
    changed(done, Values(SALT, load.value_size).maker(0)(number_of(key, load)), key)


def an_older_write(done: Measured) -> None:
    key, value = of_bucket(done, written=True)
    values = Values(SALT, done.case.spec.value_size)
    stamp = values.read(value)
    assert stamp
    changed(done, values.maker(stamp.worker)(stamp.sequence - 1), key)


def of_a_worker_that_does_not_exist(done: Measured) -> None:
    key, _ = of_bucket(done, written=True)
    changed(done, Values(SALT, done.case.spec.value_size).maker(3)(1), key)


def of_the_trial_before(done: Measured) -> None:
    key, value = of_bucket(done, written=True)
    size = done.case.spec.value_size
    stamp = Values(SALT, size).read(value)
    assert stamp
    changed(done, Values(SALT - 1, size).maker(stamp.worker)(stamp.sequence), key)


def the_last_byte(done: Measured) -> None:
    key, value = of_bucket(done, written=True)
    changed(done, value ^ 1 if isinstance(value, int) else value[:-1] + bytes([value[-1] ^ 1]), key)


def another_type(done: Measured) -> None:
    key, value = of_bucket(done, written=True)
    changed(done, None if isinstance(value, int) else value.hex(), key)


def a_key_less(done: Measured) -> None:
    done.execute("DELETE FROM kv WHERE key = ?", of_bucket(done, written=True)[0])


def a_key_more(done: Measured) -> None:
    load = done.case.spec
    done.execute(
        "INSERT INTO kv VALUES (?, ?)", encoder(load.key_type)(KEYS), of_bucket(done, written=True)[1]
    )


def a_key_of_no_kind(done: Measured) -> None:
    key, _ = of_bucket(done, written=True)
    other = {int: -5, str: "key1", bytes: b"12345678" + bytes(8)}[type(key)]
    done.execute("UPDATE kv SET key = ? WHERE key = ?", other, key)


def another_bucket(done: Measured) -> None:
    key, value = of_bucket(done, written=True)
    done.execute("DELETE FROM kv WHERE key = ?", key)
    done.execute("INSERT INTO kv VALUES (?, ?)", key, value, bucket=1)


DAMAGES = [
    preload_again,
    an_older_write,
    of_a_worker_that_does_not_exist,
    of_the_trial_before,
    the_last_byte,
    another_type,
    a_key_less,
    a_key_more,
    a_key_of_no_kind,
    another_bucket,
]


@pytest.mark.parametrize("load", LOADS)
def test_whatever_is_wrong_with_a_row_is_found_and_said(load: Load, tmp_path: Path) -> None:
    done = measure(case_of(load), tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for damage in DAMAGES:
        damage(done)
        rejected(done.verdict(), "last write")
        for path, data in files.items():
            path.write_bytes(data)
    assert done.verdict().status == "ok"
