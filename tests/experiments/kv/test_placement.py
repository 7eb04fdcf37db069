"""Every key lies in one bucket, and keys that are written together lie together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.errors import Interrupted, UsageError
from sqlstress.experiments.kv.experiment import KEY_TYPES, Load
from sqlstress.experiments.kv.keys import encoder
from sqlstress.experiments.kv.partition import (
    bucket_of,
    by_bucket,
    by_bucket_once,
    shared_arrays,
    shared_arrays_once,
)
from sqlstress.experiments.kv.placement import Placement, check_room
from sqlstress.report.case import Case
from tests.pulses import Pulses, nothing


def case_of(key_space: int, buckets: int, batch: int = 1, key_type: str = "int") -> Case:
    return Case(buckets=buckets, spec=Load(key_space=key_space, batch=batch, key_type=key_type))


def placed(case: Case) -> Placement:
    return Placement(case, *shared_arrays(case, nothing))


cases = st.builds(
    case_of, st.integers(1, 400), st.integers(1, 12), st.integers(1, 9), st.sampled_from(KEY_TYPES)
)


@settings(deadline=None)
@given(cases)
def test_every_key_lies_in_the_bucket_that_the_partition_says(case: Case) -> None:
    placement, encode = placed(case), encoder(case.spec.key_type)
    for number in range(case.spec.key_space):
        assert placement.bucket(number) == bucket_of(encode(number), case.buckets)


@settings(deadline=None)
@given(cases)
def test_the_buckets_together_hold_every_key_once(case: Case) -> None:
    placement = placed(case)
    found = by_bucket(placement, nothing)
    assert len(found) == case.buckets
    assert sorted(number for numbers in found for number in numbers) == list(range(case.spec.key_space))
    for bucket, numbers in enumerate(found):
        assert list(numbers) == sorted(numbers)
        assert {placement.bucket(number) for number in numbers} <= {bucket}


@settings(deadline=None)
@given(cases)
def test_the_members_of_a_bucket_are_its_keys(case: Case) -> None:
    placement = placed(case)
    if case.spec.batch == 1 and case.buckets > 1:
        assert placement.starts == placement.pairs == []  # single replaces never ask for members
        return
    for bucket, numbers in enumerate(by_bucket(placement, nothing)):
        assert placement.size(bucket) == len(numbers)
        members = [placement.member(bucket, position) for position in range(placement.size(bucket))]
        assert members == list(numbers)
        assert [placement.position(bucket, number) for number in numbers] == list(range(len(members)))


@settings(deadline=None)
@given(cases)
def test_pairs_leave_single_keys_for_odd_batches_alone(case: Case) -> None:
    placement, batch = placed(case), case.spec.batch
    for bucket in range(len(placement.pairs)):
        singles = placement.size(bucket) - 2 * placement.pairs[bucket]
        if batch % 2:
            # Of the keys of a transaction one in `batch` belongs to no pair.
            assert abs(singles - placement.size(bucket) / batch) <= 2
        else:
            assert singles in (0, 1)


def test_one_file_without_batches_needs_no_memory() -> None:
    assert shared_arrays(case_of(10**8, buckets=1), nothing) == (None, None)


def test_the_order_of_the_keys_is_stored_only_for_batches() -> None:
    buckets, order = shared_arrays(case_of(100, buckets=3), nothing)
    assert len(buckets) == 100
    assert order is None


several = st.builds(
    case_of, st.integers(1, 400), st.integers(1, 12), st.integers(2, 9), st.sampled_from(KEY_TYPES)
)


@settings(deadline=None)
@given(several)
def test_room_is_missing_exactly_where_a_transaction_has_too_few_keys(case: Case) -> None:
    placement, batch = placed(case), case.spec.batch
    enough = all(
        placement.pairs[bucket] >= batch // 2
        and placement.size(bucket) - 2 * placement.pairs[bucket] >= batch % 2
        for bucket in range(case.buckets)
    )
    if enough:
        check_room(case, placement)
    else:
        with pytest.raises(UsageError, match=r"bucket \d+ holds \d+ keys, too few for transactions of"):
            check_room(case, placement)


def test_too_little_room_is_told_with_what_to_do() -> None:
    case = case_of(key_space=3, buckets=1, batch=4)
    with pytest.raises(UsageError, match=r"bucket 0 holds 3 keys.* of 4 distinct keys: raise --key-space"):
        check_room(case, placed(case))


@pytest.mark.parametrize("batch", [1, 4])
def test_who_stops_it_need_not_wait_until_every_key_has_its_file(batch: int) -> None:
    case = case_of(key_space=200_000, buckets=7, batch=batch)
    whole = Pulses()
    shared_arrays(case, whole)
    assert whole.count >= 10 * (1 if batch == 1 else 2)
    with pytest.raises(Interrupted):
        shared_arrays(case, Pulses(stop_at=whole.count))
    with pytest.raises(Interrupted):
        shared_arrays(replace(case, spec=replace(case.spec, key_space=10**6)), Pulses(stop_at=3))


def test_who_stops_it_need_not_wait_until_the_keys_are_grouped() -> None:
    placement, whole = placed(case_of(key_space=200_000, buckets=7)), Pulses()
    by_bucket(placement, whole)
    assert whole.count >= 10
    with pytest.raises(Interrupted):
        by_bucket(placement, Pulses(stop_at=whole.count))


@settings(deadline=None)
@given(cases, st.integers(1, 12), st.sampled_from(KEY_TYPES), st.integers(1, 400))
def test_what_is_kept_for_the_next_trial_is_of_its_own_keys_and_files(
    first: Case, buckets: int, key_type: str, key_space: int
) -> None:
    carry: dict[Any, Any] = {}
    others = (replace(first.spec, key_type=key_type), replace(first.spec, key_space=key_space))
    for case in (first, replace(first, buckets=buckets), *(replace(first, spec=spec) for spec in others)):
        placement = Placement(case, *shared_arrays_once(case, carry, nothing))
        kept = by_bucket_once(case, placement, carry, nothing)
        assert [list(group) for group in kept] == [list(group) for group in by_bucket(placed(case), nothing)]
        assert by_bucket_once(case, placement, carry, nothing) is kept
