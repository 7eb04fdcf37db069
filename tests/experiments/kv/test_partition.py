"""The partition of keys into buckets: fixed, even, and with the keys of a transaction in one bucket."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqlstress
from sqlstress.errors import Interrupted, UsageError
from sqlstress.experiments.kv.keys import (
    KEY_TYPES,
    Key,
    Placement,
    bucket_of,
    buckets_of,
    encoder,
    key_bytes,
    scatter,
)
from sqlstress.experiments.kv.spec import Load
from sqlstress.experiments.kv.work import partition_arrays
from sqlstress.report.case import MAX_BUCKETS, Case
from tests.drawing import examples
from tests.experiments.kv.evenness import uneven
from tests.pulses import Pulses, nothing

LARGEST = 2**63 - 1
BUCKETS = (2, 3, 20, 1000)
GOLDEN: dict[Key, tuple[int, ...]] = {
    0: (1, 0, 3, 83),
    1: (1, 1, 17, 537),
    99_999: (0, 2, 8, 228),
    -1: (0, 2, 6, 346),
    LARGEST: (1, 0, 13, 93),
    "": (0, 0, 0, 0),
    "key000000000000": (1, 2, 1, 401),
    "key000000099999": (0, 1, 16, 256),
    "clé": (0, 1, 16, 496),
    b"\x00": (1, 1, 11, 831),
    bytes(16): (0, 1, 0, 780),
}
"""The buckets of some keys among 2, 3, 20 and 1,000 buckets; a change of these changes every layout."""

TELL_BUCKETS = f"""
import json
from sqlstress.experiments.kv.keys import bucket_of
keys = {list(GOLDEN)!r}
print(json.dumps([[bucket_of(key, buckets) for buckets in {BUCKETS!r}] for key in keys]))
"""

FEWEST_A_BUCKET = 25
MOST_KEYS = 20_000
bucket_counts = st.integers(2, 1000)
keys_a_bucket = st.integers(FEWEST_A_BUCKET, 1000)
starts = st.one_of(st.just(0), st.integers(0, 2**40))
strides = st.one_of(st.just(1), st.integers(1, 2**20), st.integers(0, 30).map(lambda power: 2**power))


def test_keys_bucket_never_changes() -> None:
    assert {key: tuple(bucket_of(key, buckets) for buckets in BUCKETS) for key in GOLDEN} == GOLDEN


@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_another_process_with_another_hash_seed_finds_the_same_buckets(hash_seed: str) -> None:
    root = Path(sqlstress.__file__).parents[1]
    told = subprocess.run(
        [sys.executable, "-c", TELL_BUCKETS],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    )
    assert [tuple(each) for each in json.loads(told.stdout)] == list(GOLDEN.values())


@pytest.mark.parametrize(("number", "hashed"), [(0, 0), (1, 0x514E28B7), (0xFFFFFFFF, 0x81F16F39)])
def test_scattering_is_murmurhash3s_last_step(number: int, hashed: int) -> None:
    # Published: MurmurHash3_x86_32 of an empty input is this step alone, applied to the seed.
    assert scatter(number) == hashed


def test_keys_of_different_types_are_hashed_by_their_bytes() -> None:
    assert key_bytes(-2) == b"\xff" * 7 + b"\xfe"
    assert key_bytes("é") == b"\xc3\xa9"
    assert key_bytes(b"\x00\xff") == b"\x00\xff"


@pytest.mark.parametrize("key_type", KEY_TYPES)
@settings(max_examples=examples(0.3))
@given(start=starts, stride=strides, buckets=bucket_counts, each=keys_a_bucket)
def test_regular_keys_lie_evenly_over_any_number_of_buckets(
    key_type: str, start: int, stride: int, buckets: int, each: int
) -> None:
    count = buckets * max(FEWEST_A_BUCKET, min(each, MOST_KEYS // buckets))
    keys = map(encoder(key_type), range(start, start + count * stride, stride))
    assert uneven(keys, buckets, bucket_of) is None


@pytest.mark.parametrize("buckets", [2**power for power in range(1, 10)])
def test_keys_in_steps_of_a_power_of_two_are_even_over_buckets(buckets: int) -> None:
    """A linear checksum such as CRC-32 leaves buckets empty for these keys."""
    for stride in (2**power for power in range(36)):
        keys = range(0, FEWEST_A_BUCKET * buckets * stride, stride)
        assert uneven(keys, buckets, bucket_of) is None


@settings(max_examples=examples(0.2))
@given(buckets=bucket_counts, seed=st.integers(0, 2**32))
def test_random_blobs_lie_evenly_over_any_number_of_buckets(buckets: int, seed: int) -> None:
    randbytes = Random(seed).randbytes
    assert uneven((randbytes(16) for _ in range(50 * buckets)), buckets, bucket_of) is None


@pytest.mark.parametrize(
    ("bad", "keys", "buckets"),
    [
        (lambda key, buckets: crc32(key_bytes(key)) % buckets, range(0, 200 << 19, 1 << 19), 8),
        (lambda key, buckets: bucket_of(key, buckets - 1), range(25_000), 1000),
        (lambda key, buckets: bucket_of(key, buckets + 1) % buckets, range(4000), 20),
        (lambda key, buckets: bucket_of(key, buckets) + 1, range(100), 2),
    ],
    ids=["CRC-32 alone", "an empty bucket", "a bucket twice as full", "a bucket that does not exist"],
)
def test_bad_partition_is_detected_and_an_even_one_is_not(
    bad: Callable[[int, int], int], keys: range, buckets: int
) -> None:
    assert uneven(keys, buckets, bad) is not None
    assert uneven(keys, buckets, bucket_of) is None


@settings(max_examples=examples(0.2))
@given(buckets=st.integers(1, MAX_BUCKETS), keys=st.lists(st.integers(0, LARGEST), max_size=50))
def test_table_has_the_bucket_of_every_key_in_two_bytes(buckets: int, keys: list[int]) -> None:
    buckets_of_keys = buckets_of(keys, buckets)
    assert list(buckets_of_keys) == [bucket_of(key, buckets) for key in keys]
    assert buckets_of_keys.itemsize == 2


def test_bucket_numbers_use_all_of_two_bytes() -> None:
    keys = range(200)
    assert list(buckets_of(keys, 1 << 16)) == [bucket_of(key, 1 << 16) for key in keys]
    assert max(buckets_of(keys, 1 << 16)) >= 1 << 15


# The keys of each bucket, as the parent shares them.


def case_of(key_space: int, buckets: int, batch: int = 1, key_type: str = "int") -> Case:
    return Case(buckets=buckets, spec=Load(key_space=key_space, batch=batch, key_type=key_type))


def placed(case: Case) -> Placement:
    return Placement(case, *partition_arrays(case, {}, nothing))


cases = st.builds(
    case_of, st.integers(1, 400), st.integers(1, 12), st.integers(1, 9), st.sampled_from(KEY_TYPES)
)


@settings(deadline=None)
@given(cases)
def test_every_key_is_in_exactly_the_bucket_of_the_partition(case: Case) -> None:
    placement, encode = placed(case), encoder(case.spec.key_type)
    found: list[int] = []
    for bucket in range(case.buckets):
        numbers = list(placement.members(bucket))
        assert numbers == sorted(numbers)
        assert placement.size(bucket) == len(numbers)
        assert [placement.member(bucket, position) for position in range(len(numbers))] == numbers
        assert [placement.position(bucket, number) for number in numbers] == list(range(len(numbers)))
        for number in numbers:
            assert placement.bucket(number) == bucket == bucket_of(encode(number), case.buckets)
        found += numbers
    assert sorted(found) == list(range(case.spec.key_space))


@settings(deadline=None)
@given(cases)
def test_pairs_leave_single_keys_for_odd_batches_alone(case: Case) -> None:
    placement, batch = placed(case), case.spec.batch
    for bucket, pairs in enumerate(placement.pairs):
        singles = placement.size(bucket) - 2 * pairs
        if batch % 2:
            # Of the keys of a transaction, one in `batch` belongs to no pair.
            assert abs(singles - placement.size(bucket) / batch) <= 2
        else:
            assert singles in (0, 1)


def test_single_file_needs_no_shared_memory() -> None:
    assert partition_arrays(case_of(10**8, buckets=1, batch=2), {}, nothing) == (None, None)


@settings(deadline=None)
@given(cases)
def test_room_is_missing_exactly_where_a_transaction_has_too_few_keys(case: Case) -> None:
    placement, batch = placed(case), case.spec.batch
    enough = all(
        pairs >= batch // 2 and placement.size(bucket) - 2 * pairs >= batch % 2
        for bucket, pairs in enumerate(placement.pairs)
    )
    if enough or batch == 1:
        placement.check_room()
    else:
        with pytest.raises(UsageError, match=r"bucket \d+ has \d+ keys, too few for transactions of"):
            placement.check_room()


def test_too_few_keys_in_a_bucket_are_refused_with_a_remedy() -> None:
    case = case_of(key_space=3, buckets=1, batch=4)
    with pytest.raises(UsageError, match=r"bucket 0 has 3 keys.* of 4 distinct keys. Raise --key-space"):
        placed(case).check_room()


def test_assignment_of_keys_to_files_can_be_interrupted() -> None:
    case = case_of(key_space=200_000, buckets=7)
    whole = Pulses()
    partition_arrays(case, {}, whole)
    assert whole.count >= 10
    with pytest.raises(Interrupted):
        partition_arrays(case, {}, Pulses(stop_at=whole.count))


@settings(deadline=None)
@given(cases, st.integers(1, 12), st.sampled_from(KEY_TYPES), st.integers(1, 400))
def test_arrays_are_reused_only_for_equal_keys_and_files(
    first: Case, buckets: int, key_type: str, key_space: int
) -> None:
    carry: dict[Any, Any] = {}
    others = (replace(first.spec, key_type=key_type), replace(first.spec, key_space=key_space))
    for case in (first, replace(first, buckets=buckets), *(replace(first, spec=spec) for spec in others)):
        kept = partition_arrays(case, carry, nothing)
        for found, expected in zip(kept, partition_arrays(case, {}, nothing), strict=True):
            assert (found and list(found)) == (expected and list(expected))
        assert all(
            again is array for again, array in zip(partition_arrays(case, carry, nothing), kept, strict=True)
        )
