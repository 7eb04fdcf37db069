"""What a worker does to a store, seen by a store that only listens."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.engine.loop import back_to_back
from sqlstress.engine.protocols import FAILED
from sqlstress.engine.values import Stamp
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.experiment import DISTRIBUTIONS, KEY_TYPES, Load
from sqlstress.experiments.kv.keys import number_of
from sqlstress.experiments.kv.partition import bucket_of
from sqlstress.experiments.kv.worker import KINDS
from tests.drawing import examples
from tests.experiments.kv.dry import GET, REPLACE, Call, Recorder, do, rows_of

OPERATIONS = 20_000


def kinds_of(calls: list[Call]) -> Counter[str]:
    return Counter(call.kind for call in calls)


def key_of(call: Call) -> Any:
    return call.params[0]


@pytest.mark.parametrize("read_ratio", [0.003, 0.1, 0.5, 0.9, 0.997])
def test_the_share_of_gets_is_the_read_ratio(read_ratio: float) -> None:
    gets = kinds_of(Recorder(Load(read_ratio=read_ratio)).run(OPERATIONS))[GET]
    deviation = math.sqrt(read_ratio * (1 - read_ratio) / OPERATIONS)
    # Where the ratio is drawn in steps of 1/256 for each chunk, that adds up to half a step over 200 chunks.
    assert abs(gets / OPERATIONS - read_ratio) <= 5 * (deviation + 0.5 / 256 / math.sqrt(200))


@pytest.mark.parametrize(("read_ratio", "kind"), [(0.0, REPLACE), (1.0, GET)])
def test_at_the_ends_there_is_only_one_kind(read_ratio: float, kind: str) -> None:
    assert kinds_of(Recorder(Load(read_ratio=read_ratio)).run(1000)) == {kind: 1000}


@settings(max_examples=examples(0.4))
@given(
    read_ratio=st.sampled_from([0.0, 0.3, 1.0]),
    buckets=st.integers(1, 6),
    key_type=st.sampled_from(KEY_TYPES),
    value_size=st.sampled_from([8, 30]),
    distribution=st.sampled_from(DISTRIBUTIONS),
)
def test_every_call_goes_to_its_keys_bucket_with_what_its_kind_takes(
    read_ratio: float, buckets: int, key_type: str, value_size: int, distribution: str
) -> None:
    load = Load(read_ratio, 0, 50, distribution, key_type, value_size)
    recorder = Recorder(load, buckets)
    chunk = recorder.source.next_chunk(64)
    kinds = [KINDS[kind] for kind in chunk.kinds]
    assert len(do(recorder.source, chunk)) == 64
    assert [call.kind for call in recorder.calls] == kinds
    for call in recorder.calls:
        assert call.bucket == bucket_of(key_of(call), buckets)
        number = number_of(key_of(call), key_type)
        assert number is not None and number < 50
        assert len(call.params) == (1 if call.kind == GET else 2)


def test_every_key_is_drawn() -> None:
    calls = Recorder(Load(key_space=40), buckets=3).run(2000)
    for kind in (GET, REPLACE):
        assert {key_of(call) for call in calls if call.kind == kind} == set(range(40))


@pytest.mark.parametrize("batch", [1, 4, 5])
@pytest.mark.parametrize("value_size", [8, 20])
def test_sequence_numbers_ascend_and_are_never_used_again(batch: int, value_size: int) -> None:
    recorder = Recorder(Load(value_size=value_size, batch=batch), worker=3, concurrency=4)
    stamps = recorder.stamps(recorder.run(500, size=7) + recorder.run(500, size=100))
    assert {stamp.worker for stamp in stamps if stamp} == {3}
    sequences = [stamp.sequence for stamp in stamps if stamp]
    assert len(sequences) == len(stamps) > 0
    assert sequences[0] >= 1
    assert all(before < after for before, after in pairwise(sequences))


def test_the_seed_the_trial_and_the_worker_make_a_stream_of_their_own() -> None:
    def stream(**more: Any) -> list[Any]:
        return [key_of(call) for call in Recorder(Load(), concurrency=2, **more).run(50)]

    assert stream(worker=1) == stream(worker=1)
    assert stream(worker=1) != stream(worker=2)
    assert stream(worker=1, seed=5) != stream(worker=1, seed=6)


def acknowledged(recorder: Recorder) -> dict[int, tuple[int, int, int]]:
    area = recorder.area()
    columns = zip(area.sequences.tolist(), area.begins.tolist(), area.ends.tolist(), strict=True)
    return {slot: words for slot, words in enumerate(columns) if words[0]}


@pytest.mark.parametrize("key_type", KEY_TYPES)
def test_each_keys_last_write_is_acknowledged_with_its_times(key_type: str) -> None:
    recorder = Recorder(Load(key_space=20, key_type=key_type), buckets=2)
    chunk = recorder.source.next_chunk(100)
    assert recorder.area().meta[0] == 100, "the chunk is announced before it is done"
    do(recorder.source, chunk)
    assert recorder.area().meta[0] == 0, "and settled when it is"
    expected = {}
    for index, call in enumerate(recorder.calls):
        for key, value in rows_of(call):
            stamp = recorder.values.read(value)
            assert stamp
            expected[number_of(key, key_type)] = (stamp.sequence, index + 1, index + 2)
    assert acknowledged(recorder) == expected


def test_every_row_of_a_batch_is_acknowledged() -> None:
    recorder = Recorder(Load(key_space=50, batch=3, read_ratio=0.2), buckets=2)
    do(recorder.source, recorder.source.next_chunk(60))
    expected = {}
    for index, call in enumerate(recorder.calls):
        for key, value in rows_of(call):
            stamp = recorder.values.read(value)
            assert stamp
            expected[key] = (stamp.sequence, index + 1, index + 2)
    assert acknowledged(recorder) == expected


@pytest.mark.parametrize("batch", [1, 3])
def test_what_was_not_done_any_more_is_not_acknowledged(batch: int) -> None:
    recorder = Recorder(Load(key_space=50, read_ratio=0.0, batch=batch))
    source = recorder.source
    chunk = source.next_chunk(10)
    source.settle(chunk, 4, [None] * 4, back_to_back(1, [2, 3, 4, 5]))
    assert max(sequence for sequence, _, _ in acknowledged(recorder).values()) == 4 * batch


class Busy(Exception):
    """A lock stayed taken until the time-out."""


@pytest.mark.parametrize("batch", [1, 3])
def test_a_write_that_was_given_up_is_failed_and_not_acknowledged(batch: int) -> None:
    # So many keys that none of them is written twice.
    recorder = Recorder(Load(key_space=5000, read_ratio=0.0, batch=batch))
    recorder.source.store.was_busy = lambda error: isinstance(error, Busy)
    chunk = recorder.source.next_chunk(8)
    do(recorder.source, chunk, {3: Busy()})
    assert [index for index, kind in enumerate(chunk.kinds) if kind == FAILED] == [3]
    told = {Stamp(1, sequence) for sequence, _, _ in acknowledged(recorder).values()}
    written = set(recorder.stamps(recorder.calls))
    assert told == written
    assert len(written) == 7 * batch
    assert {Stamp(1, 3 * batch + place) for place in range(1, batch + 1)}.isdisjoint(written)


@pytest.mark.parametrize(
    "load", [Load(read_ratio=0.99), Load(read_ratio=0.99, batch=2)], ids=["gets", "pairs"]
)
def test_a_read_that_was_given_up_is_failed_and_not_taken_for_a_wrong_one(load: Load) -> None:
    recorder = Recorder(load)
    recorder.source.store.was_busy = lambda error: isinstance(error, Busy)
    chunk = recorder.source.next_chunk(20)
    do(recorder.source, chunk, {index: Busy() for index in range(20)})
    assert set(chunk.kinds) == {FAILED}
    findings = recorder.source.findings()
    assert (findings.reads_checked, findings.bad_reads, findings.torn) == (0, 0, 0)


def test_an_error_that_is_not_busy_ends_the_worker() -> None:
    recorder = Recorder(Load())
    with pytest.raises(ZeroDivisionError):
        do(recorder.source, recorder.source.next_chunk(8), {3: ZeroDivisionError()})


@pytest.mark.parametrize("load", [Load(), Load(read_ratio=1.0), Load(value_size=50), Load(batch=2)], ids=repr)
def test_every_value_read_is_checked(load: Load) -> None:
    recorder = Recorder(load)
    gets = kinds_of(recorder.run(200))[GET]
    findings = recorder.source.findings()
    assert (findings.reads_checked, findings.bad_reads) == (gets, 0)


def test_without_proof_nothing_is_checked_or_acknowledged() -> None:
    recorder = Recorder(Load(), verify="none")
    recorder.run(200)
    assert recorder.source.findings().reads_checked == 0
    assert acknowledged(recorder) == {}


@pytest.mark.parametrize("read_ratio", [0.5, 1.0])
def test_a_wrong_value_is_told_with_its_key(read_ratio: float) -> None:
    recorder = Recorder(Load(read_ratio=read_ratio, key_space=10))
    recorder.source.store.gets = [lambda params: 42 if params == (7,) else recorder.values.maker(0)(0)]
    recorder.run(200)
    findings = recorder.source.findings()
    assert 0 < findings.bad_reads < findings.reads_checked
    assert findings.bad_read_examples[0].startswith("a get of key 7 read the value 42")


@pytest.mark.parametrize("keys", [1000, 999])
def test_with_too_little_memory_a_subset_of_the_keys_is_tracked(
    keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acks, "MEMORY_BUDGET", 24 * 100)
    recorder = Recorder(Load(key_space=keys, read_ratio=0.0))
    calls = recorder.run(3000)
    slots = acks.Slots(keys, 100)
    expected = {
        slots.slot(call.params[0]): recorder.values.read(call.params[1])
        for call in calls
        if slots.slot(call.params[0]) != acks.UNTRACKED
    }
    assert {slot: Stamp(1, words[0]) for slot, words in acknowledged(recorder).items()} == expected
    assert 80 < len(expected) <= 100
