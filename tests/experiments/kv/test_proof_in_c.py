"""The check in C accepts only correct data; otherwise Python checks each row and reports the faults."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.values import Values
from sqlstress.experiments.kv.keys import Key, encoder
from sqlstress.experiments.kv.spec import Load
from sqlstress.experiments.kv.work import KeyValueWork
from sqlstress.report.case import Case, Settings
from sqlstress.targets.native import extension, unavailable_reason
from tests.experiments.measured import SALT, Measured, measure, rejected
from tests.rows import thorough

pytestmark = pytest.mark.skipif(unavailable_reason(extension) is not None, reason="nothing was built here")
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
def test_correct_rows_are_checked_in_c_only(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = measure(case_of(load), tmp_path)
    monkeypatch.setattr(KeyValueWork, "check_keys", None)
    assert {check.name: (check.status, check.checked) for check in measured.verdict().checks}[
        "last write"
    ] == ("ok", KEYS)


class Written:
    """A row of the first bucket that a worker has written, to be damaged."""

    def __init__(self, done: Measured) -> None:
        self.done, self.load = done, done.case.spec
        read = Values(SALT, self.load.value_size).read
        rows = done.rows("SELECT key, value FROM kv ORDER BY key")
        stamped = ((key, value, stamp) for key, value in rows if (stamp := read(value)) and stamp.worker)
        self.key, self.value, self.stamp = next(stamped)

    def key_of(self, number: int) -> Key:
        return encoder(self.load.key_type)(number)

    def number(self) -> int:
        return next(number for number in range(KEYS) if self.key_of(number) == self.key)

    def holds(self, value: Any) -> None:
        self.done.execute("UPDATE kv SET value = ? WHERE key = ?", value, self.key)

    def holds_write(self, worker: int, sequence: int, salt: int = SALT) -> None:
        self.holds(Values(salt, self.load.value_size).maker(worker)(sequence))

    def is_gone(self) -> None:
        self.done.execute("DELETE FROM kv WHERE key = ?", self.key)

    def is_there(self, key: Any, bucket: int = 0) -> None:
        self.done.execute("INSERT INTO kv VALUES (?, ?)", key, self.value, bucket=bucket)

    def becomes(self, key: Any, bucket: int = 0) -> None:
        self.is_gone()
        self.is_there(key, bucket)


def another_byte(value: Any) -> Any:
    return value ^ 1 if isinstance(value, int) else value[:-1] + bytes([value[-1] ^ 1])


OF_NO_KIND = {int: -5, str: "key1", bytes: b"12345678" + bytes(8)}
DAMAGES: list[Callable[[Written], None]] = [
    lambda row: row.holds_write(0, row.number()),  # the preloaded value again
    lambda row: row.holds_write(row.stamp.worker, row.stamp.sequence - 1),
    lambda row: row.holds_write(3, 1),  # there is no third worker
    lambda row: row.holds_write(*row.stamp, salt=SALT - 1),  # of the previous trial
    lambda row: row.holds(another_byte(row.value)),
    lambda row: row.holds(None if isinstance(row.value, int) else row.value.hex()),  # of another type
    lambda row: row.is_gone(),
    lambda row: row.is_there(row.key_of(KEYS)),  # an additional key
    lambda row: row.becomes(OF_NO_KIND[type(row.key)]),
    lambda row: row.becomes(row.key, bucket=1),
]


@pytest.mark.parametrize("load", LOADS)
def test_every_kind_of_wrong_row_is_found_and_reported(load: Load, tmp_path: Path) -> None:
    done = measure(case_of(load), tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for damage in DAMAGES:
        damage(Written(done))
        rejected(done.verdict(), "last write")
        for path, data in files.items():
            path.write_bytes(data)
    assert done.verdict().status == "ok"
