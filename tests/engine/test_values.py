"""Values contain their writer, are unique, and other bytes are never taken for a value."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.engine.values import SALTS, SEQUENCE_BITS, WORKER_BITS, Stamp, Values
from sqlstress.report.case import MAX_CONCURRENCY
from tests.rows import thorough

EIGHT_BYTE_INTEGER = 6
"""Serial type of SQLite's record format."""
sizes = st.one_of(st.just(8), st.integers(9, 600))
trials = st.integers(0, 2**40)
workers = st.integers(0, MAX_CONCURRENCY)
sequences = st.integers(0, (1 << SEQUENCE_BITS) - 1)


def value_of(trial: int, size: int, worker: int, sequence: int) -> Any:
    return Values(trial, size).maker(worker)(sequence)


@given(trials, sizes, workers, sequences)
def test_value_has_its_writer_and_sequence(trial: int, size: int, worker: int, sequence: int) -> None:
    value = value_of(trial, size, worker, sequence)
    assert Values(trial, size).read(value) == Stamp(worker, sequence)
    assert isinstance(value, int) if size == 8 else len(value) == size


@pytest.mark.parametrize("size", [8, 9, thorough(100)])
def test_values_of_two_writes_differ(size: int) -> None:
    assert MAX_CONCURRENCY < 1 << WORKER_BITS
    stamps = [(worker, sequence) for worker in range(1, 21) for sequence in range(600)]
    values = {value_of(trial, size, *stamp) for trial in (1, 2) for stamp in stamps}
    assert len(values) == 2 * len(stamps)


@pytest.mark.parametrize("trial", [0, 1, SALTS - 1, SALTS])
@pytest.mark.parametrize("worker", [0, 1, MAX_CONCURRENCY])
def test_integer_always_takes_eight_bytes_in_the_file(trial: int, worker: int, tmp_path: Path) -> None:
    """The only row of the only leaf: a cell of payload length, header length, two serial types."""
    path = tmp_path / "one-row.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE kv (key INTEGER PRIMARY KEY, value INTEGER) WITHOUT ROWID")
        connection.execute("INSERT INTO kv VALUES (5, ?)", (value_of(trial, 8, worker, 0),))
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema").fetchone()
    page = path.read_bytes()[(root - 1) * page_size : root * page_size]
    cell = int.from_bytes(page[8:10], "big")
    _payload, header, _key, value = page[cell : cell + 4]
    assert (header, value) == (3, EIGHT_BYTE_INTEGER)


@given(trials, st.integers(9, 600), workers, sequences, st.data())
def test_flipped_bit_never_reads_as_the_same_write(
    trial: int, size: int, worker: int, sequence: int, data: st.DataObject
) -> None:
    value = bytearray(value_of(trial, size, worker, sequence))
    bit = data.draw(st.integers(0, 8 * size - 1))
    value[bit // 8] ^= 1 << bit % 8
    assert Values(trial, size).read(bytes(value)) != Stamp(worker, sequence)


@pytest.mark.parametrize("size", [24, 100, 300])
def test_value_with_wrong_padding_has_no_writer(size: int) -> None:
    values = Values(7, size)
    value, *other_values = (values.maker(worker)(sequence) for worker, sequence in ((3, 5), (4, 5), (3, 6)))
    assert isinstance(value, bytes)
    for other in other_values:
        assert isinstance(other, bytes) and values.read(value[:8] + other[8:]) is None
    for place in (8, 20, size - 1):
        assert values.read(value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]) is None


@given(trials, st.integers(1, SALTS - 1), sizes, workers, sequences)
def test_value_of_another_trial_has_no_writer_unless_preloaded(
    trial: int, distance: int, size: int, worker: int, sequence: int
) -> None:
    read = Values(trial + distance, size).read(value_of(trial, size, worker, sequence))
    assert read == (None if worker else Stamp(0, sequence))


@pytest.mark.parametrize("stranger", [None, -1, 0, 42, 1.5, "text", b"", b"12345678", b"123456789", 2**63])
@pytest.mark.parametrize("size", [8, 9])
def test_foreign_values_have_no_writer(stranger: object, size: int) -> None:
    assert Values(1, size).read(stranger) is None


@settings(deadline=None)
@given(sizes, sizes)
def test_value_of_another_size_has_no_writer(size: int, other: int) -> None:
    stamp = Values(1, other).read(value_of(1, size, 2, 3))
    assert stamp == (Stamp(2, 3) if size == other else None)
