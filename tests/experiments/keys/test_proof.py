"""The proof rejects what it must: each way in which a table of picks can be wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics import keys_work as work
from sqlstress.experiments.classics.keys_work import (
    Acknowledged,
    TableContents,
    check_foreign_keys,
    check_ids,
    check_lists,
)
from sqlstress.report import Check

TOLD = Acknowledged({0: [4, 2, 9], 1: [3, 4], 2: [7, 8]}, unknown={2})
"""User 0's and 1's picks were acknowledged, user 2's worker died while it inserted."""
ORDER = [[0, 2], [1]]
"""The users of two workers."""


def found(picks: dict[int, dict[int, list[Any]]]) -> TableContents:
    return TableContents({user: dict(items) for user, items in picks.items()})


def whole(*users: int) -> dict[int, dict[int, list[Any]]]:
    return {user: {item: [None] for item in TOLD.picked[user]} for user in users}


def check_picks(told: Acknowledged, there: TableContents) -> Check:
    return work.check_picks(told, there, lambda: None)


def wrong(check: Check) -> str:
    assert check.status == "failed"
    assert check.problems == len(check.counterexamples)
    return "; ".join(check.counterexamples)


@pytest.mark.parametrize("users", [(0, 1), (0, 1, 2)], ids=["not at all", "wholly"])
def test_the_transaction_of_a_dead_worker_may_be_there_wholly_or_not_at_all(users: tuple[int, ...]) -> None:
    count = sum(len(TOLD.picked[user]) for user in users)
    assert check_picks(TOLD, found(whole(*users))) == Check("picks", "ok", count)


GONE = {4: [None], 9: [None]}


@pytest.mark.parametrize(
    ("picks", "said"),
    [
        ({**whole(0, 1), 2: {8: [None]}}, ["user 2's pick of item 7 is gone"]),
        ({**whole(1), 0: GONE}, ["user 0's pick of item 2 is gone"]),
        (whole(0), ["user 1's pick of item 3 is gone", "user 1's pick of item 4 is gone"]),
        ({**whole(0), 1: {3: [None, None], 4: [None]}}, ["user 1's pick of item 3 is there 2 times"]),
        (
            {**whole(1), 0: {**whole(0)[0], 3: [None]}, 5: {1: [None]}},
            [
                "user 0's pick of item 3 was never acknowledged",
                "user 5's pick of item 1 was never acknowledged",
            ],
        ),
    ],
    ids=["a part of a dead worker's", "one gone", "all of a user's gone", "twice", "nobody's"],
)
def test_a_wrong_pick_is_named(picks: dict[int, dict[int, list[Any]]], said: list[str]) -> None:
    assert wrong(check_picks(TOLD, found(picks))) == "; ".join(said)


def test_rows_of_somebody_who_does_not_exist_and_altered_ones_are_named() -> None:
    there = TableContents(whole(0, 1), strangers=["a row of nobody's", "another one"], altered=[(1, 4)])
    check = check_picks(TOLD, there)
    assert wrong(check) == ("a row of nobody's; another one; user 1's pick of item 4 holds what nobody wrote")
    # Strangers are counted among the rows, but not among those that can refer to something.
    assert (check.checked, there.rows()) == (5 + 2, 5)


@given(st.data())
def test_whatever_else_is_there_or_not_is_rejected(data: st.DataObject) -> None:
    rows = data.draw(st.dictionaries(st.tuples(st.integers(0, 3), st.integers(2, 9)), st.integers(1, 2)))
    there = TableContents()
    for (user, item), times in rows.items():
        there.picks.setdefault(user, {})[item] = [None] * times
    right = [
        {(user, item): 1 for user in users for item in TOLD.picked[user]} for users in ((0, 1), (0, 1, 2))
    ]
    assert (check_picks(TOLD, there).status == "ok") == (rows in right)


def ids_check(made: dict[int, list[Any]], id_type: str) -> Check:
    """Judge ids, given in the order of each user's picks."""
    there = {
        user: {item: [one] for item, one in zip(TOLD.picked[user], of_user, strict=True)}
        for user, of_user in made.items()
    }
    return check_ids(ORDER, TOLD, found(there), id_type)


def blob(number: int) -> bytes:
    return number.to_bytes(16)


MADE = {0: [blob(5), blob(6), blob(7)], 2: [blob(9), blob(11)], 1: [blob(1), blob(8)]}


@pytest.mark.parametrize("id_type", ["uuid4", "ulid", "ulid-monotonic", "uuid7"])
def test_ids_that_ascend_within_each_worker_are_accepted(id_type: str) -> None:
    assert ids_check(MADE, id_type) == Check("identifiers", "ok", 7)


def test_of_a_user_whose_transaction_was_not_begun_there_are_no_ids() -> None:
    there = {0: dict(zip(TOLD.picked[0], ([one] for one in MADE[0]), strict=True))}
    assert check_ids([[0, 5], [6]], TOLD, found(there), "uuid7") == Check("identifiers", "ok", 3)


@pytest.mark.parametrize("user", [0, 2], ids=["within a transaction", "from one to the next"])
def test_an_id_that_is_smaller_than_the_one_before_is_named_where_order_is_promised(user: int) -> None:
    made = {**MADE, user: [blob(5), blob(4), blob(7)][: len(MADE[user])]}
    assert "and is less" in " ".join(ids_check(made, "uuid7").counterexamples)
    if user == 0:
        assert ids_check(made, "ulid").status == "ok"


@pytest.mark.parametrize(
    ("of_user", "id_type", "said"),
    [
        ([blob(8), blob(1)], "uuid7", f"{blob(1).hex()} was made after {blob(8).hex()}, and is less"),
        # The same one again is not out of order.
        ([blob(1), blob(1)], "uuid7", f"{blob(1).hex()} is there twice"),
        ([blob(1), blob(7)], "uuid4", f"{blob(7).hex()} is there twice"),
    ],
)
def test_an_id_out_of_order_or_twice_is_named(of_user: list[bytes], id_type: str, said: str) -> None:
    assert wrong(ids_check({**MADE, 1: of_user}, id_type)) == said


@pytest.mark.parametrize(
    ("one", "id_type"),
    [(b"short", "uuid4"), ("0" * 16, "ulid"), (None, "uuid7"), (7, "uuid4"), (blob(2), "int"), (None, "int")],
)
def test_an_id_of_another_type_is_named(one: Any, id_type: str) -> None:
    first = [5, 6, 7] if id_type == "int" else MADE[0]
    assert f"is not of the type {id_type}" in wrong(ids_check({0: [*first[:2], one]}, id_type))


@pytest.mark.parametrize(
    ("one", "id_type", "said"), [(b"c" * 30, "uuid7", "63" * 20), ("x" * 50, "int", f"'{'x' * 39}")]
)
def test_of_a_long_id_of_another_type_the_beginning_is_shown(one: Any, id_type: str, said: str) -> None:
    assert wrong(ids_check({1: [one, one]}, id_type)).startswith(f"{said} is not of the type {id_type}; ")


def check_integers(*of_users: list[Any]) -> Check:
    """Judge the integers that one worker's users got, each user's in a transaction of its own."""
    told = Acknowledged({user: range(len(own)) for user, own in enumerate(of_users)})
    there = {user: {item: [one] for item, one in enumerate(own)} for user, own in enumerate(of_users)}
    return check_ids([range(len(of_users))], told, TableContents(there), "int")


def test_between_two_transactions_integers_may_be_left_out() -> None:
    assert check_integers([1, 2], [9, 10], [], [30]).status == "ok"
    assert check_integers([7], [8, 9]).status == "ok"


@pytest.mark.parametrize(
    ("of_users", "said"),
    [
        ([[1, 2, 4]], "4 was made after 2, and does not follow on it"),
        ([[5, 6], [3]], "3 was made after 6, and is less"),
        ([[5, 6], [], [3]], "3 was made after 6, and is less"),
        ([[1, 2, 2]], "2 is there twice; 2 was made after 2, and is less"),
    ],
)
def test_integers_that_do_not_follow_on_each_other_are_named(of_users: list[list[Any]], said: str) -> None:
    assert wrong(check_integers(*of_users)) == said


def test_every_row_made_before_the_trial_must_be_there_as_it_was_made() -> None:
    made: dict[str, dict[Any, tuple[Any, ...]]]
    made = {"users": {b"1": ("a",), b"2": ("b",)}, "items": {5: ("book", 3)}}
    check = check_lists(made, {"users": [(b"2", "b"), (b"1", "a")], "items": [(5, "book", 3)]})
    assert check == Check("users and items", "ok", 3)


def test_rows_made_before_the_trial_that_are_gone_or_changed_or_new_are_named() -> None:
    made = {"users": {b"1": ("a",), b"2": ("b",), b"3": ("c",)}}
    check = check_lists(made, {"users": [(b"1", "a"), (b"2", "z"), (b"9", "q")]})
    assert check.checked == 3
    assert wrong(check) == (
        "32 of users reads ('z',), and not ('b',); 39 of users is there, and nobody made it; "
        "33 of users is gone"
    )


def test_a_foreign_key_that_dangles_is_named() -> None:
    assert check_foreign_keys([], 7) == Check("foreign keys", "ok", 7)
    said = wrong(check_foreign_keys([("picks", 12, "users", 1), ("picks", None, "items", 0)], 7))
    assert said == (
        "row 12 of picks refers to a row of users that is not there; "
        "a row of picks refers to a row of items that is not there"
    )


def test_nothing_to_look_at_proves_nothing() -> None:
    assert check_picks(Acknowledged({}), TableContents()).status == "skipped"
