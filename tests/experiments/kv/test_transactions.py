"""Transactions of several statements: which keys are written together, and which are read together."""

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.keys import DISTRIBUTIONS, KEY_TYPES, bucket_of, number_of
from sqlstress.experiments.kv.spec import Load
from sqlstress.experiments.kv.worker import KINDS, PAIRS_AMONG_GETS, TransactionSource
from tests.drawing import examples
from tests.experiments.kv.dry import GET, PAIR, REPLACE, UPDATE, Call, Recorder, rows_of

OPERATIONS = 10_000
batches = st.integers(2, 9)
layouts = st.tuples(batches, st.integers(1, 7), st.integers(20, 300))
key_types = st.sampled_from(KEY_TYPES)
distributions = st.sampled_from(DISTRIBUTIONS)


def numbers_of(call: Call, key_type: str) -> list[int]:
    keys = [key for key, _ in rows_of(call)] if call.kind == REPLACE else call.params
    numbers = [number_of(key, key_type) for key in keys]
    assert None not in numbers
    return [number for number in numbers if number is not None]


@settings(max_examples=examples(0.8))
@given(layouts, key_types, distributions)
def test_batch_has_distinct_keys_of_one_bucket_and_whole_pairs(
    layout: tuple[int, int, int], key_type: str, distribution: str
) -> None:
    batch, buckets, key_space = layout
    try:
        recorder = Recorder(Load(0.5, 0.0, key_space, distribution, key_type, 8, batch), buckets)
    except UsageError:
        return  # a bucket has too few keys for a transaction
    calls = recorder.run(150)
    for call in calls:
        numbers = numbers_of(call, key_type)
        assert len(set(numbers)) == len(numbers) == {REPLACE: batch, PAIR: 2, GET: 1}[call.kind]
        assert max(numbers) < key_space
        keys = [key for key, _ in rows_of(call)] if call.kind == REPLACE else call.params
        assert {bucket_of(key, buckets) for key in keys} == {call.bucket}
    pairs = {frozenset(numbers_of(call, key_type)) for call in calls if call.kind == PAIR}
    assert sum(map(len, pairs)) == len(frozenset().union(*pairs)), "a key belongs to two pairs"
    for call in calls:
        if call.kind == REPLACE:
            written = numbers_of(call, key_type)
            for pair in pairs:
                assert pair <= set(written) or pair.isdisjoint(written)
                if pair <= set(written):
                    first, second = sorted(map(written.index, pair))
                    assert second == first + 1, "the check of pairs asks for neighbouring sequence numbers"


@pytest.mark.parametrize(("batch", "buckets"), [(2, 1), (3, 1), (2, 3), (4, 3), (5, 3)])
def test_every_key_is_written_and_every_pair_is_read(batch: int, buckets: int) -> None:
    recorder = Recorder(Load(key_space=120, batch=batch), buckets)
    calls = recorder.run(OPERATIONS)
    written = Counter(key for call in calls for key, _ in rows_of(call))
    pairs = Counter(call.params for call in calls if call.kind == PAIR)
    placement = recorder.source.placement
    # With an odd number of keys, even batches leave out the last key.
    alone = sum(placement.size(bucket) % 2 for bucket in range(buckets)) if batch % 2 == 0 else 0
    assert len(written) == 120 - alone
    assert len(pairs) == sum(placement.pairs)
    assert min(written.values()) > written.total() / 120 / 2
    assert min(pairs.values()) > pairs.total() / len(pairs) / 4


def test_torn_pair_is_found() -> None:
    recorder = Recorder(Load(batch=4))
    mine, preload = recorder.values.maker(1), recorder.values.maker(0)
    recorder.source.store.pairs = [lambda keys: [(keys[0], mine(1)), (keys[1], preload(0))]]
    recorder.run(400)
    findings = recorder.source.findings()
    assert findings.torn == findings.pairs_checked > 0
    assert "by worker 1's write 1 and " in findings.torn_examples[0]


@pytest.mark.parametrize(("read_ratio", "batch"), [(1.0, 1), (1.0, 4), (0.5, 4)])
def test_reads_are_judged_by_their_kind(read_ratio: float, batch: int) -> None:
    recorder = Recorder(Load(read_ratio=read_ratio, batch=batch, update_ratio=0.0))
    kinds = Counter(call.kind for call in recorder.run(400))
    findings = recorder.source.findings()
    assert set(kinds) - {REPLACE} == ({GET, PAIR} if batch > 1 else {GET})
    assert (findings.reads_checked, findings.pairs_checked) == (kinds[GET], kinds[PAIR])
    assert (findings.bad_reads, findings.torn) == (0, 0)


def kinds_drawn(load: Load) -> dict[str, int]:
    chunk_kinds: Counter[int] = Counter()
    source = Recorder(load).source
    for _ in range(OPERATIONS // 100):
        chunk_kinds.update(source.next_chunk(100).kinds)
    return {KINDS[kind]: count for kind, count in chunk_kinds.items()}


def assert_share(count: int, share: float) -> None:
    assert abs(count / OPERATIONS - share) <= 5 * math.sqrt(share * (1 - share) / OPERATIONS)


def test_shares_of_the_kinds_equal_those_of_the_case() -> None:
    kinds = kinds_drawn(Load(read_ratio=0.3, update_ratio=0.2, batch=3))
    assert_share(kinds[GET] + kinds[PAIR], 0.3)
    assert_share(kinds[PAIR], 0.3 / PAIRS_AMONG_GETS)
    assert_share(kinds[UPDATE], 0.2)
    assert_share(kinds[REPLACE], 0.5)


@pytest.mark.parametrize(
    ("load", "kinds"),
    [
        (Load(read_ratio=0, update_ratio=1), {UPDATE}),
        (Load(read_ratio=0.5, update_ratio=0.5), {GET, UPDATE}),
        (Load(read_ratio=0, batch=2), {REPLACE}),
        (Load(read_ratio=0.5, update_ratio=0.2), {GET, UPDATE, REPLACE}),
    ],
)
def test_only_requested_kinds_of_operations_are_done(load: Load, kinds: set[str]) -> None:
    assert set(kinds_drawn(load)) == kinds


def test_update_case_without_batches_replaces_single_rows() -> None:
    recorder = Recorder(Load(update_ratio=0.3), buckets=3)
    assert isinstance(recorder.source, TransactionSource)
    assert not isinstance(Recorder(Load()).source, TransactionSource)
    replaces = [call for call in recorder.run(200) if call.kind == REPLACE]
    assert {len(rows_of(call)) for call in replaces} == {1}
    assert all(call.bucket == bucket_of(call.params[0], 3) for call in replaces)


def test_updates_are_acknowledged_one_by_one_and_spread_over_all_counters() -> None:
    recorder = Recorder(Load(read_ratio=0, update_ratio=1), buckets=3)
    recorder.run(3000)
    counts = recorder.area().counts.tolist()
    assert len(counts) == 3 * COUNTERS
    assert sum(counts) == 3000
    assert min(counts) > 0


def test_update_that_fails_is_not_acknowledged() -> None:
    class Failing(Exception):
        pass

    def fail(_counter: object) -> None:
        raise Failing

    recorder = Recorder(Load(read_ratio=0, update_ratio=1))
    recorder.source.store.updates[0] = fail
    update = recorder.source._counting_update(0)
    with pytest.raises(Failing):
        update((3,))
    assert sum(recorder.area().counts.tolist()) == 0


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_weight_of_each_kind_is_its_number_of_rows(batch: int) -> None:
    source = Recorder(Load(batch=batch, update_ratio=0.1)).source
    weights = dict(zip(KINDS, source.row_weights, strict=True))
    assert weights == {GET: 1, REPLACE: batch, UPDATE: 1, PAIR: 2}


def test_chunk_never_outgrows_its_area() -> None:
    for batch in (1, 2, 100, 2000):
        recorder = Recorder(Load(batch=batch, key_space=5000, read_ratio=0.0))
        chunk = recorder.source.next_chunk(recorder.source.largest_chunk)
        assert len(chunk.rows) == len(recorder.area().rows)


def test_bucket_with_too_few_keys_is_refused_before_the_start() -> None:
    with pytest.raises(UsageError, match="too few for transactions of 8 distinct keys"):
        Recorder(Load(key_space=10, batch=8), buckets=4)
