"""The proof accepts what a correct store can answer, and nothing else."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.engine.protocols import Findings, Outcome
from sqlstress.engine.values import Stamp
from sqlstress.experiments.kv.work import PRELOADED, History, check_counters, check_keys, ends_of_the_dead
from sqlstress.report import Check
from sqlstress.report.results import EXAMPLES, Tally
from tests.drawing import examples
from tests.experiments.kv import stories
from tests.experiments.kv.stories import SLOTS, Story, Write


def judge(story: Story) -> Check:
    missing = () if story.is_there else ("k",)
    return check_keys(story.history(), story.rows(), missing)


ACCEPTED = [
    # nobody touched it
    "-> preload",
    # the last write
    "1w5@10-20 -> 1w5",
    "1w5@10-20 1w6@20-30 -> 1w6",
    "1w5@10-20 2w7@30-40 -> 2w7",
    "2w7@10-20 1w5@30-40 -> 1w5",
    # overlapping writes end either way
    "1w5@10-30 2w7@20-40 -> 1w5",
    "1w5@10-30 2w7@20-40 -> 2w7",
    "1w5@10-90 2w7@20-40 -> 1w5",
    "1w5@10-90 2w7@20-40 -> 2w7",
    "1w5@10-90 2w7@20-40 3w9@50-60 -> 1w5",
    "1w5@10-90 2w7@20-40 3w9@50-60 -> 3w9",
    # one begins at the very moment at which the other ends
    "1w5@10-20 2w7@20-30 -> 1w5",
    # under way when its worker died: there, or not
    "?1w5 -> 1w5",
    "?1w5 -> preload",
    "1w5@10-20 ?1w6 -> 1w6",
    "1w5@10-20 ?1w6 -> 1w5",
    "1w5@10-20 ?2w9 -> 2w9",
    "1w5@10-20 ?2w9 -> 1w5",
    # another's write had begun when the dead worker ended, so they may have overlapped
    "1w5@10-20 ?2w9 x2@10 -> 2w9",
    "1w5@10-20 ?2w9 x2@15 -> 2w9",
    "1w5@10-20 ?2w9 x2@5 -> 1w5",
]

REJECTED = {
    "lost: the value from before is back": (
        "1w5@10-20 -> preload",
        "key k holds its earlier value, but worker 1's write 5 was acknowledged",
    ),
    "lost: one of several, the value from before is back": (
        "1w5@10-20 2w7@30-40 -> preload",
        "key k holds its earlier value, but worker 2's write 7 was acknowledged",
    ),
    "lost: another's write began when the dead worker had ended": (
        "1w5@10-20 ?2w9 x2@9 -> 2w9",
        "key k holds write 9 of worker 2, who died in it, but worker 1's write 5 began after that",
    ),
    "lost, though another was under way": (
        "1w5@10-20 ?2w9 -> preload",
        "key k holds its earlier value, but worker 1's write 5 was acknowledged",
    ),
    "stale: an older write of the same worker": (
        "1w5@10-20 1w6@20-30 -> 1w5",
        "key k holds worker 1's write 5, but write 6 is its last acknowledged one",
    ),
    "stale: another worker wrote later": (
        "1w5@10-20 2w7@30-40 -> 1w5",
        "key k holds worker 1's write 5, but worker 2's write 7 began after that one completed",
    ),
    "stale: the other way round": (
        "2w7@10-20 1w5@30-40 -> 2w7",
        "key k holds worker 2's write 7, but worker 1's write 5 began after that one completed",
    ),
    "stale: the last of three wrote later": (
        "1w5@10-40 2w7@20-30 3w9@41-50 -> 1w5",
        "key k holds worker 1's write 5, but worker 3's write 9 began after that one completed",
    ),
    "stale: a write that began a moment after the end": (
        "1w5@10-20 2w7@21-30 -> 1w5",
        "key k holds worker 1's write 5, but worker 2's write 7 began after that one completed",
    ),
    "never acknowledged and not under way": (
        "1w5@10-20 -> 1w6",
        "key k holds worker 1's write 6, but write 5 is its last acknowledged one",
    ),
    "a worker who wrote nothing": (
        "2w7@10-20 -> 1w1",
        "key k holds worker 1's write 1, but none of its writes was acknowledged",
    ),
    "a worker who does not exist": (
        "1w5@10-20 -> 9w1",
        "key k holds a value of worker 9, who does not exist",
    ),
    "worker 0, who preloads and does not write": (
        "1w5@10-20 -> 0w5",
        "key k holds a value of worker 0, who does not exist",
    ),
    "foreign": ("1w5@10-20 -> stranger", "key k holds a value that nobody wrote"),
    "foreign, where nobody wrote": ("-> stranger", "key k holds a value that nobody wrote"),
    "gone": ("1w5@10-20 -> nothing", "key k is gone"),
    "gone, though nobody wrote": ("-> nothing", "key k is gone"),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_a_correct_store_can_answer_is_accepted(text: str) -> None:
    check = judge(stories.read(text))
    assert (check.status, check.problems, check.counterexamples) == ("ok", 0, ())
    assert check.checked == SLOTS


@pytest.mark.parametrize("name", REJECTED)
def test_what_no_correct_store_answers_is_rejected_with_the_reason(name: str) -> None:
    text, reason = REJECTED[name]
    check = judge(stories.read(text))
    assert (check.status, check.problems) == ("failed", 1)
    assert check.counterexamples == (reason,)


def possible(story: Story) -> bool:
    """Search all orders in which the writes can have taken effect for one that ends in what was found."""
    if story.found == PRELOADED:
        return not story.writes
    return any(_stamp(order[-1]) == story.found for order in permutations(story.writes) if _can_be(order))


def _stamp(write: Write) -> Stamp:
    return Stamp(write.worker, write.sequence)


def _can_be(order: tuple[Write, ...]) -> bool:
    """An order can be when no write comes before one that had ended when it began."""
    return not any(
        later.end < earlier.begin or (later.worker == earlier.worker and later.sequence < earlier.sequence)
        for index, later in enumerate(order)
        for earlier in order[:index]
    )


@st.composite
def random_stories(draw: st.DrawFn) -> Story:
    """Up to five writes by up to three workers, each of whom does one thing after another."""
    writes = []
    for worker in range(1, draw(st.integers(1, 3)) + 1):
        times = sorted(draw(st.lists(st.integers(1, 12), min_size=2, max_size=4, unique=True)))
        writes += [Write(worker, number, *span) for number, span in enumerate(pairwise(times), 1)]
    writes = draw(st.permutations(writes))[:5]
    writes.sort(key=lambda write: (write.worker, write.sequence))
    found = draw(st.sampled_from([*map(_stamp, writes), PRELOADED]))
    return Story(writes, frozenset(), found, is_there=True)


@settings(max_examples=examples(10))
@given(random_stories())
def test_every_story_is_judged_as_an_exhaustive_search_judges_it(story: Story) -> None:
    assert (judge(story).status == "ok") is possible(story)


def test_slots_are_judged_apart() -> None:
    story = stories.read("1w5@10-20 -> 1w5")
    history = story.history()
    rows = [("a", 0, Stamp(1, 5)), ("b", 1, Stamp(1, 5)), ("c", 2, PRELOADED)]
    check = check_keys(history, rows, [])
    assert check.problems == 1
    assert check.counterexamples[0].startswith("key a holds worker 1's write 5")


def test_an_untracked_key_has_only_to_hold_a_value_of_the_trial() -> None:
    history = stories.read("1w5@10-20 -> 1w5").history()
    rows = [("a", None, Stamp(1, 99)), ("b", None, PRELOADED), ("c", None, None)]
    check = check_keys(history, rows, [], "half of the keys")
    assert check.counterexamples == ("key c holds a value that nobody wrote",)
    assert (check.checked, check.note) == (3, "half of the keys")


def test_all_problems_are_counted_and_the_first_ones_told() -> None:
    history = stories.read("-> preload").history()
    check = check_keys(history, [(str(number), None, None) for number in range(50)], ["x", "y"])
    assert check.problems == 52
    assert len(check.counterexamples) == EXAMPLES
    assert check.counterexamples[0] == "key 0 holds a value that nobody wrote"


def test_a_check_of_nothing_is_skipped_and_not_ok() -> None:
    assert Tally("empty").check().status == "skipped"


def test_only_a_check_of_a_part_has_a_note() -> None:
    assert check_keys(History([], [], [], []), [("a", None, PRELOADED)], []) == Check("last write", "ok", 1)


def test_ends_are_known_of_workers_that_died_at_a_known_time() -> None:
    outcomes = [
        Outcome(1, died=True, findings=None, over_ns=70),
        Outcome(2, died=True, findings=None),
        Outcome(3, died=False, findings=Findings(), over_ns=90),
    ]
    assert ends_of_the_dead(outcomes) == {1: 70}


TOLD = {"a": 10, "b": 0}


@pytest.mark.parametrize(
    ("found", "in_flight"),
    [
        ({"a": 10, "b": 0}, 0),
        ({"a": 10, "b": 0}, 2),
        ({"a": 11, "b": 0}, 1),
        ({"a": 11, "b": 1}, 2),
        ({"a": 10, "b": 2}, 2),
    ],
)
def test_counters_may_hold_what_was_acknowledged_and_what_was_under_way(
    found: dict[str, int | None], in_flight: int
) -> None:
    check = check_counters(found, TOLD, in_flight)
    assert check == Check("lost updates", "ok", 2)


@pytest.mark.parametrize(
    ("found", "in_flight", "reasons"),
    [
        ({"a": 9, "b": 0}, 0, ["counter a is 9 after 10 acknowledged updates"]),
        ({"a": 9, "b": 1}, 1, ["counter a is 9 after 10 acknowledged updates"]),
        ({"a": 10}, 0, ["counter b is gone"]),
        ({"a": 10, "b": None}, 0, ["counter b is None, which is no number of updates"]),
        ({"a": 10, "b": 0, "c": 0}, 0, ["counter c is there, and nobody made it"]),
        (
            {"a": 11, "b": 0},
            0,
            ["the counters hold 1 more than was acknowledged, and at most 0 are accounted for: a 1"],
        ),
        (
            {"a": 12, "b": 1},
            2,
            ["the counters hold 3 more than was acknowledged, and at most 2 are accounted for: a 2, b 1"],
        ),
        ({"a": 0}, 0, ["counter a is 0 after 10 acknowledged updates", "counter b is gone"]),
    ],
)
def test_lost_and_unexplained_updates_are_told(
    found: dict[str, int | None], in_flight: int, reasons: list[str]
) -> None:
    check = check_counters(found, TOLD, in_flight)
    assert check.status == "failed"
    assert list(check.counterexamples) == reasons


def test_a_write_under_way_at_one_key_does_not_excuse_it_at_another() -> None:
    history = History([[0, 0]], [[0, 0]], [[0, 0]], [0, 0], {Stamp(1, 5): 0})
    assert check_keys(history, [("a", 0, Stamp(1, 5)), ("b", 1, PRELOADED)], []).status == "ok"
    check = check_keys(history, [("a", 0, PRELOADED), ("b", 1, Stamp(1, 5))], [])
    assert (check.status, check.problems) == ("failed", 1)
