"""The calls of a worker to a store that only records; and its findings in the values that it reads."""

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.engine.loop import back_to_back_stamps
from sqlstress.engine.protocols import FAILED
from sqlstress.engine.values import SALTS, Stamp, Values
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.keys import DISTRIBUTIONS, KEY_TYPES, bucket_of, number_of
from sqlstress.experiments.kv.spec import Load
from sqlstress.experiments.kv.worker import EXAMPLES, KINDS, ReadCheck
from sqlstress.report.case import Settings
from tests.drawing import examples
from tests.experiments.kv.dry import GET, Call, Recorder, do, rows_of
from tests.experiments.kv.mortal import entered

OPERATIONS = 20_000


def kinds_of(calls: list[Call]) -> Counter[str]:
    return Counter(call.kind for call in calls)


def key_of(call: Call) -> Any:
    return call.params[0]


@pytest.mark.parametrize("read_ratio", [0.0, 0.003, 0.5, 0.997, 1.0])
def test_share_of_gets_is_the_read_ratio(read_ratio: float) -> None:
    gets = kinds_of(Recorder(Load(read_ratio=read_ratio)).run(OPERATIONS))[GET]
    deviation = math.sqrt(read_ratio * (1 - read_ratio) / OPERATIONS)
    # If the ratio is drawn in steps of 1/256 for each chunk, that adds up to half a step over 200 chunks.
    steps = 0.5 / 256 / math.sqrt(200) if 0 < read_ratio < 1 else 0
    assert abs(gets / OPERATIONS - read_ratio) <= 5 * (deviation + steps)


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


def test_seed_trial_and_worker_each_change_the_random_stream() -> None:
    def stream(**more: Any) -> list[Any]:
        return [key_of(call) for call in Recorder(Load(), concurrency=2, **more).run(50)]

    assert stream(worker=1) == stream(worker=1)
    assert stream(worker=1) != stream(worker=2)
    assert stream(worker=1, seed=5) != stream(worker=1, seed=6)


@pytest.mark.parametrize(("key_type", "batch"), [("int", 1), ("text", 1), ("blob", 1), ("int", 3)])
def test_each_keys_last_write_is_acknowledged_with_its_times(key_type: str, batch: int) -> None:
    recorder = Recorder(Load(key_space=50, key_type=key_type, batch=batch), buckets=2)
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
    assert entered(recorder.area()) == expected


@pytest.mark.parametrize("batch", [1, 3])
def test_undone_operations_of_a_chunk_are_not_acknowledged(batch: int) -> None:
    recorder = Recorder(Load(key_space=50, read_ratio=0.0, batch=batch))
    source = recorder.source
    chunk = source.next_chunk(10)
    source.settle(chunk, 4, [None] * 4, back_to_back_stamps(1, [2, 3, 4, 5]))
    assert max(sequence for sequence, _, _ in entered(recorder.area()).values()) == 4 * batch


class Busy(Exception):
    """A lock stayed taken until the time-out."""


def giving_up(load: Load, **more: Any) -> Recorder:
    """Return a worker whose operations may be given up."""
    recorder = Recorder(load, **more)
    recorder.source.store.was_busy = lambda error: isinstance(error, Busy)
    return recorder


@pytest.mark.parametrize("batch", [1, 3])
def test_write_given_up_is_failed_and_not_acknowledged(batch: int) -> None:
    # So many keys that no key is written twice.
    recorder = giving_up(Load(key_space=5000, read_ratio=0.0, batch=batch))
    chunk = recorder.source.next_chunk(8)
    do(recorder.source, chunk, {3: Busy()})
    assert [index for index, kind in enumerate(chunk.kinds) if kind == FAILED] == [3]
    told = {Stamp(1, sequence) for sequence, _, _ in entered(recorder.area()).values()}
    written = set(recorder.stamps(recorder.calls))
    assert told == written
    assert len(written) == 7 * batch
    assert {Stamp(1, 3 * batch + place) for place in range(1, batch + 1)}.isdisjoint(written)


@pytest.mark.parametrize(
    "load",
    [Load(read_ratio=0.99), Load(read_ratio=1.0), Load(read_ratio=0.99, batch=2)],
    ids=["gets", "only gets", "pairs"],
)
def test_read_given_up_is_failed_and_not_a_wrong_read(load: Load) -> None:
    recorder = giving_up(load)
    chunk = recorder.source.next_chunk(20)
    do(recorder.source, chunk, {index: Busy() for index in range(20)})
    assert set(chunk.kinds) == {FAILED}
    findings = recorder.source.findings()
    assert (findings.reads_checked, findings.bad_reads, findings.torn) == (0, 0, 0)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("ops", [1000, None])
def test_fixed_work_ends_after_a_minute_without_a_possible_write(ops: int | None, batch: int) -> None:
    settings = Settings(busy_timeout_ms=5_000)
    source = giving_up(Load(read_ratio=0.0, batch=batch), settings=settings, ops=ops).source

    def chunk_of_six(given_up: int) -> None:
        do(source, source.next_chunk(6), {index: Busy() for index in range(given_up)})

    chunk_of_six(6)
    chunk_of_six(5)  # one operation was done
    chunk_of_six(6)
    chunk_of_six(6)  # a minute, and no longer
    if ops is None:
        chunk_of_six(6)
    else:
        with pytest.raises(EnvironmentFailure, match="18 writes in a row failed"):
            chunk_of_six(6)


def test_error_other_than_busy_ends_the_worker() -> None:
    recorder = Recorder(Load())
    with pytest.raises(ZeroDivisionError):
        do(recorder.source, recorder.source.next_chunk(8), {3: ZeroDivisionError()})


@pytest.mark.parametrize("load", [Load(), Load(read_ratio=1.0), Load(value_size=50), Load(batch=2)], ids=repr)
def test_all_read_values_are_checked_unless_checks_are_off(load: Load) -> None:
    recorder = Recorder(load)
    gets = kinds_of(recorder.run(200))[GET]
    findings = recorder.source.findings()
    assert (findings.reads_checked, findings.bad_reads) == (gets, 0)
    recorder = Recorder(load, verify="none")
    recorder.run(200)
    assert recorder.source.findings().reads_checked == 0
    assert entered(recorder.area()) == {}


@pytest.mark.parametrize("read_ratio", [0.5, 1.0])
def test_wrong_value_is_reported_with_its_key(read_ratio: float) -> None:
    recorder = Recorder(Load(read_ratio=read_ratio, key_space=10))
    recorder.source.store.gets = [lambda params: 42 if params == (7,) else recorder.values.maker(0)(0)]
    recorder.run(200)
    findings = recorder.source.findings()
    assert 0 < findings.bad_reads < findings.reads_checked
    assert findings.bad_read_examples[0].startswith("a get of key 7 read the value 42")


@pytest.mark.parametrize("keys", [1000, 999])
def test_subset_of_the_keys_is_tracked_if_memory_is_short(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acks, "MEMORY_BUDGET", 24 * 100)
    recorder = Recorder(Load(key_space=keys, read_ratio=0.0))
    calls = recorder.run(3000)
    slots = acks.Slots(keys, 100)
    expected = {
        slots.slot(call.params[0]): recorder.values.read(call.params[1])
        for call in calls
        if slots.slot(call.params[0]) != acks.UNTRACKED
    }
    assert {slot: Stamp(1, words[0]) for slot, words in entered(recorder.area()).items()} == expected
    assert 80 < len(expected) <= 100


# Values that were read.


TRIAL, BATCH = 7, 4
sizes = st.sampled_from([8, 9, 40])
writers = st.tuples(st.integers(0, 9), st.integers(0, 10**6))


def value_of(size: int, worker: int, sequence: int, trial: int = TRIAL) -> Any:
    return Values(trial, size).maker(worker)(sequence)


def checked(size: int, values: list[Any]) -> ReadCheck:
    check = ReadCheck(Values(TRIAL, size), BATCH)
    check.values_read(values, [(key,) for key in range(len(values))])
    return check


@given(sizes, st.lists(writers))
def test_values_of_the_trial_are_accepted(size: int, written: list[tuple[int, int]]) -> None:
    findings = checked(size, [value_of(size, *each) for each in written]).findings
    assert (findings.reads_checked, findings.bad_reads) == (len(written), 0)


@given(sizes, st.integers(1, SALTS - 1), st.integers(0, 4))
def test_value_of_another_trial_is_a_bad_read(size: int, distance: int, place: int) -> None:
    values = [value_of(size, 1, sequence) for sequence in range(4)]
    values.insert(place, value_of(size, 1, 1, TRIAL + distance))
    findings = checked(size, values).findings
    assert (findings.reads_checked, findings.bad_reads) == (5, 1)
    assert findings.bad_read_examples[0].startswith(f"a get of key {place} read the value ")


@pytest.mark.parametrize("size", [8, 40])
@pytest.mark.parametrize("stranger", [None, 0, -1, 1.5, "text", b"", b"x" * 40, b"x" * 8, 2**62])
def test_foreign_value_is_a_bad_read(size: int, stranger: object) -> None:
    findings = checked(size, [value_of(size, 1, 1), stranger]).findings
    assert (findings.reads_checked, findings.bad_reads) == (2, 1)
    assert findings.bad_read_examples[0].startswith("a get of key 1 read ")


@pytest.mark.parametrize("cut", [slice(39), slice(8), slice(1, None)])
def test_value_of_another_length_is_reported(cut: slice) -> None:
    whole = value_of(40, 1, 1)
    assert checked(40, [whole, whole[cut]]).findings.bad_reads == 1
    assert checked(40, [whole, whole + b"x"]).findings.bad_reads == 1


def test_all_bad_reads_are_counted_and_the_first_ones_reported() -> None:
    findings = checked(8, [None] * 50).findings
    assert findings.bad_reads == 50
    assert len(findings.bad_read_examples) == EXAMPLES
    assert findings.bad_read_examples[0] == "a get of key 0 read nothing"


def pair_of(size: int, *written: tuple[int, int]) -> list[tuple[Any, Any]]:
    return [(key, value_of(size, *each)) for key, each in enumerate(written)]


def torn(size: int, rows: list[tuple[Any, Any]]) -> int:
    check = ReadCheck(Values(TRIAL, size), BATCH)
    check.pair_read(rows)
    assert check.findings.pairs_checked == 1
    assert len(check.findings.torn_examples) == check.findings.torn
    return check.findings.torn


WHOLE: dict[str, tuple[tuple[int, int], ...]] = {
    "both preloaded": ((0, 17), (0, 99)),
    "one batch": ((1, 1), (1, 2)),
    "in either order": ((1, 2), (1, 1)),
    "the batch's second pair": ((2, 7), (2, 8)),
    "a later batch": ((2, 4 * 1000 + 1), (2, 4 * 1000 + 2)),
}
TORN: dict[str, tuple[tuple[int, int], ...]] = {
    "one still preloaded": ((0, 17), (1, 1)),
    "two workers": ((1, 1), (2, 2)),
    "two workers, the same number": ((1, 1), (2, 1)),
    "two batches": ((1, 1), (1, 6)),
    "no neighbours": ((1, 1), (1, 3)),
    "neighbours of two batches": ((1, 4), (1, 5)),
    "the same write twice": ((1, 1), (1, 1)),
    "one row": ((1, 1),),
    "three rows": ((1, 1), (1, 2), (1, 3)),
    "no row": (),
}


@pytest.mark.parametrize("size", [8, 40])
def test_only_a_pair_of_one_transaction_is_whole(size: int) -> None:
    assert {name: torn(size, pair_of(size, *written)) for name, written in WHOLE.items()} == dict.fromkeys(
        WHOLE, 0
    )
    assert {name: torn(size, pair_of(size, *written)) for name, written in TORN.items()} == dict.fromkeys(
        TORN, 1
    )


def test_torn_pair_is_reported_with_its_writers() -> None:
    check = ReadCheck(Values(TRIAL, 8), BATCH)
    check.pair_read([("a", value_of(8, 1, 5)), ("b", value_of(8, 0, 3))])
    check.pair_read([("a", 42)])
    check.pair_read([])
    assert check.findings.torn_examples == [
        "a snapshot of a pair of one transaction read 'a' by worker 1's write 5 and 'b' by the preload",
        "a snapshot of a pair of one transaction read 'a' by nobody (42)",
        "a snapshot of a pair of one transaction read no rows",
    ]
