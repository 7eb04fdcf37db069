"""What a worker finds wrong in what it reads."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.values import SALTS, Values
from sqlstress.experiments.kv.worker import EXAMPLES, ReadCheck

TRIAL, BATCH = 7, 4
sizes = st.sampled_from([8, 9, 40])
writers = st.tuples(st.integers(0, 9), st.integers(0, 10**6))


def made(size: int, worker: int, sequence: int, trial: int = TRIAL) -> Any:
    return Values(trial, size).maker(worker)(sequence)


def checked(size: int, values: list[Any]) -> ReadCheck:
    check = ReadCheck(Values(TRIAL, size), BATCH)
    check.values_read(values, [(key,) for key in range(len(values))])
    return check


@given(sizes, st.lists(writers))
def test_values_of_the_trial_are_accepted(size: int, written: list[tuple[int, int]]) -> None:
    findings = checked(size, [made(size, *each) for each in written]).findings
    assert (findings.reads_checked, findings.bad_reads) == (len(written), 0)
    assert findings.bad_read_examples == []


@given(sizes, st.integers(1, SALTS - 1), st.integers(0, 4))
def test_one_value_of_another_trial_among_others_is_found(size: int, distance: int, place: int) -> None:
    values = [made(size, 1, sequence) for sequence in range(4)]
    values.insert(place, made(size, 1, 1, TRIAL + distance))
    findings = checked(size, values).findings
    assert (findings.reads_checked, findings.bad_reads) == (5, 1)
    assert findings.bad_read_examples[0].startswith(f"a get of key {place} read the value ")


@pytest.mark.parametrize("size", [8, 40])
@pytest.mark.parametrize("stranger", [None, 0, -1, 1.5, "text", b"", b"x" * 40, b"x" * 8, 2**62])
def test_what_nobody_wrote_is_found(size: int, stranger: object) -> None:
    findings = checked(size, [made(size, 1, 1), stranger]).findings
    assert (findings.reads_checked, findings.bad_reads) == (2, 1)
    assert findings.bad_read_examples[0].startswith("a get of key 1 read ")


@pytest.mark.parametrize("cut", [slice(39), slice(8), slice(1, None)])
def test_a_value_of_another_length_is_found(cut: slice) -> None:
    whole = made(40, 1, 1)
    assert checked(40, [whole, whole[cut]]).findings.bad_reads == 1
    assert checked(40, [whole, whole + b"x"]).findings.bad_reads == 1


def test_a_missing_row_is_told_in_words() -> None:
    assert checked(8, [None]).findings.bad_read_examples == ["a get of key 0 read nothing"]


def test_all_bad_reads_are_counted_and_the_first_ones_told() -> None:
    findings = checked(8, [1] * 50).findings
    assert findings.bad_reads == 50
    assert len(findings.bad_read_examples) == EXAMPLES


def pair_of(size: int, *written: tuple[int, int]) -> list[tuple[Any, Any]]:
    return [(key, made(size, *each)) for key, each in enumerate(written)]


def torn(size: int, rows: list[tuple[Any, Any]]) -> int:
    check = ReadCheck(Values(TRIAL, size), BATCH)
    check.pair_read(rows)
    assert check.findings.pairs_checked == 1
    assert len(check.findings.torn_examples) == check.findings.torn
    return check.findings.torn


@pytest.mark.parametrize("size", [8, 40])
@pytest.mark.parametrize(
    "written",
    [
        ((0, 17), (0, 99)),
        ((1, 1), (1, 2)),
        ((1, 2), (1, 1)),
        ((2, 7), (2, 8)),
        ((2, 4 * 1000 + 1), (2, 4 * 1000 + 2)),
    ],
    ids=["both preloaded", "one batch", "in either order", "the batch's second pair", "a later batch"],
)
def test_a_pair_of_one_transaction_is_whole(size: int, written: tuple[Any, Any]) -> None:
    assert torn(size, pair_of(size, *written)) == 0


@pytest.mark.parametrize("size", [8, 40])
@pytest.mark.parametrize(
    "written",
    [
        ((0, 17), (1, 1)),
        ((1, 1), (2, 2)),
        ((1, 1), (2, 1)),
        ((1, 1), (1, 6)),
        ((1, 1), (1, 3)),
        ((1, 4), (1, 5)),
        ((1, 1), (1, 1)),
        ((1, 1),),
        ((1, 1), (1, 2), (1, 3)),
        (),
    ],
    ids=[
        "one still preloaded",
        "two workers",
        "two workers, the same number",
        "two batches",
        "no neighbours",
        "neighbours of two batches",
        "the same write twice",
        "one row",
        "three rows",
        "no row",
    ],
)
def test_any_other_pair_is_torn(size: int, written: tuple[Any, ...]) -> None:
    assert torn(size, pair_of(size, *written)) == 1


def test_a_pair_with_a_value_that_nobody_wrote_is_torn() -> None:
    assert torn(8, [(0, made(8, 1, 1)), (1, 42)]) == 1
    assert torn(8, [(0, made(8, 0, 5)), (1, None)]) == 1


def test_a_torn_pair_is_told_with_its_writers() -> None:
    check = ReadCheck(Values(TRIAL, 8), BATCH)
    check.pair_read([("a", made(8, 1, 5)), ("b", made(8, 0, 3))])
    check.pair_read([("a", 42)])
    check.pair_read([])
    assert check.findings.torn_examples == [
        "a snapshot of a pair of one transaction read 'a' by worker 1's write 5 and 'b' by the preload",
        "a snapshot of a pair of one transaction read 'a' by nobody (42)",
        "a snapshot of a pair of one transaction read no rows",
    ]
