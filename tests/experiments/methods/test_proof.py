"""The proof: a history that it must accept, and each of those that it must reject."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics.methods_work import Acknowledged, check_rows, ordered
from tests.example_report import assert_golden_texts


def rows(*places: int | None) -> list[tuple[object, int | None]]:
    return [(f"row at {place}", place) for place in places]


def verdict(told: list[Acknowledged], *places: int | None) -> tuple[str, str]:
    check = check_rows("rows", rows(*places), told, "the row at {}".format)
    assert (check.problems > 0) == (check.status == "failed")
    return check.status, "; ".join(check.counterexamples)


ALL = Acknowledged("worker 1", range(4), 4)
HALF = Acknowledged("worker 1", range(4), 2)
NONE = Acknowledged("worker 1", range(4), 0)
DEAD = Acknowledged("worker 1", range(4), 2, step=1)
DEAD_AT_ONCE = Acknowledged("worker 1", range(4), 0, step=4)


@pytest.mark.parametrize(
    ("told", "places"),
    [
        ([ALL], (0, 1, 2, 3)),
        ([ALL], (3, 1, 0, 2)),
        ([HALF], (0, 1)),
        ([DEAD], (0, 1)),
        ([DEAD], (0, 1, 2)),
        ([DEAD_AT_ONCE], ()),
        ([DEAD_AT_ONCE], (0, 1, 2, 3)),
        ([Acknowledged("worker 1", range(2), 2), Acknowledged("worker 2", range(2, 5), 1)], (0, 2, 1)),
        ([], ()),
    ],
)
def test_what_the_workers_were_told_is_accepted(told: list[Acknowledged], places: tuple[int, ...]) -> None:
    assert verdict(told, *places) == ("ok" if places else "skipped", "")


TWO = [Acknowledged("worker 1", range(2), 2), Acknowledged("worker 2", range(2, 5), 2)]
Places = tuple[int | None, ...]
REJECTED: dict[str, tuple[list[Acknowledged], list[Places]]] = {
    "4 acknowledged": ([ALL], [(0, 1, 2), (1, 2, 3), (0, 1, 2, 3, 3), (0, 1, 2, 3, None), (0, 1, 2, 3, 4)]),
    "2 of 4 acknowledged": ([HALF], [(0, 1, 2), (0, 2), (1, 2), (0, 1, 3)]),
    "2 of 4 acknowledged, and 1 under way": ([DEAD], [(0, 1, 2, 3), (0, 1, 3), (0,)]),
    "none acknowledged": ([NONE], [(2,)]),
    "4 under way at once": ([DEAD_AT_ONCE], [(0, 1)]),
    "nobody wrote": ([], [(0,)]),
    "2 and 2 of 3 acknowledged": (TWO, [(0, 1, 2)]),
}


def test_anything_else_is_rejected_with_the_reason() -> None:
    found = {}
    for name, (told, tables) in REJECTED.items():
        for places in tables:
            status, because = verdict(told, *places)
            assert status == "failed"
            found[f"{name}, there: {places}"] = because
    assert_golden_texts("methods-rejected.txt", found)


def test_every_row_is_counted() -> None:
    check = check_rows("rows", rows(0, 1), [HALF], str)
    assert (check.name, check.status, check.checked) == ("rows", "ok", 2)


@given(st.integers(1, 30), st.data())
def test_one_row_less_or_more_is_rejected_wherever_it_is(count: int, data: st.DataObject) -> None:
    acknowledged = data.draw(st.integers(1, count))
    told = [Acknowledged("worker 1", range(count), acknowledged)]
    right = list(range(acknowledged))
    assert verdict(told, *right)[0] == "ok"
    lost = data.draw(st.sampled_from(right))
    assert verdict(told, *(place for place in right if place != lost))[0] == "failed"
    if acknowledged < count:
        assert verdict(told, *right, data.draw(st.integers(acknowledged, count - 1)))[0] == "failed"


BOTH = [Acknowledged("worker 1", range(3), 3), Acknowledged("worker 2", range(3, 6), 3)]


def placed(*found: tuple[int, int]) -> list[int | None]:
    """Return the places that samples are given, which are there as (id, place)."""
    return [place for _, place in ordered([((one,), place) for one, place in found], BOTH)]


def test_samples_of_several_processes_may_come_in_any_order_between_them() -> None:
    assert placed((1, 3), (2, 0), (3, 1), (4, 4), (5, 5), (6, 2)) == [3, 0, 1, 4, 5, 2]


def test_samples_of_one_process_that_swapped_their_ids_have_no_place() -> None:
    assert placed((1, 2), (2, 3), (3, 1), (4, 0), (5, 4), (6, 5)) == [None, 3, 1, None, 4, 5]


def test_a_sample_that_is_gone_leaves_the_others_their_places() -> None:
    assert placed((1, 0), (3, 2), (4, 3), (5, 4), (6, 5)) == [0, 2, 3, 4, 5]


def test_an_id_beyond_the_number_of_samples_is_nobodys() -> None:
    assert placed((1, 0), (2, 1), (3, 3), (4, 4), (5, 5), (7, 2)) == [0, 1, 3, 4, 5, None]


def test_a_sample_that_is_there_twice_has_its_place_both_times() -> None:
    assert placed((1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 5)) == [0, 1, 2, 3, 4, 5, 5]


def test_samples_that_swapped_their_ids_have_no_place_where_one_process_wrote_them_all() -> None:
    one = [Acknowledged("worker 1", range(2), 2)]
    assert [place for _, place in ordered([((1,), 1), ((2,), 0)], one)] == [None, None]
