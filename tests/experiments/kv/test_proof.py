"""The proof accepts every answer of a correct store, and no other.

Histories of one key, written by hand in a tiny language.

    1w5@10-20 2w7@15-30 ?3w9 -> 2w7

Worker 1's write 5 began at 10 and was acknowledged at 20; worker 2's write 7 overlapped it; worker 3
died while its write 9 was under way ("x3@40": it had certainly ended at 40); write 7 of worker 2 was read at
the end. Instead of a write, "preload" (the value from before the trial), "stranger" (a value that no
worker wrote) or "nothing" (no row) can be read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.engine.protocols import Findings, Outcome
from sqlstress.engine.values import Stamp
from sqlstress.experiments.kv.work import PRELOADED, ReadHistory, check_counters, check_keys, death_times
from sqlstress.report import Check
from sqlstress.report.results import MAX_COUNTEREXAMPLES, CheckCounter
from tests.drawing import examples

_WRITE = re.compile(r"(\d+)w(\d+)@(\d+)-(\d+)")
_STAMP = re.compile(r"\??(\d+)w(\d+)")
_END = re.compile(r"x(\d+)@(\d+)")

SLOT = 1
"""The key's slot; the slots around it belong to keys without writes."""
SLOTS = 3


class Write(NamedTuple):
    """An acknowledged write."""

    worker: int
    sequence: int
    begin: int
    end: int


@dataclass
class Story:
    """The writes to one key, and the value read at the end."""

    writes: list[Write]
    unknown: frozenset[Stamp]
    found: Stamp | None
    is_there: bool
    over: dict[int, int] = field(default_factory=dict)

    def history(self) -> ReadHistory:
        """Return the workers' acknowledged writes, as they remember them: the last write of each worker."""
        workers = max((write.worker for write in self.writes), default=1)
        sequences, begins, ends = ([[0] * SLOTS for _ in range(workers)] for _ in range(3))
        latest = [0] * SLOTS
        latest[SLOT] = max((write.begin for write in self.writes), default=0)
        for worker, sequence, begin, end in self.writes:
            sequences[worker - 1][SLOT] = sequence
            begins[worker - 1][SLOT] = begin
            ends[worker - 1][SLOT] = end
        return ReadHistory(sequences, begins, ends, latest, dict.fromkeys(self.unknown, SLOT), self.over)

    def rows(self) -> Iterator[tuple[str, int, Stamp | None]]:
        """Yield the rows that were read; the neighbours of the key have their preloaded values."""
        for slot in range(SLOTS):
            if slot != SLOT:
                yield f"beside{slot}", slot, PRELOADED
            elif self.is_there:
                yield "k", slot, self.found


def read(text: str) -> Story:
    """Read a story."""
    happened, _, found = text.rpartition("->")
    writes, unknown, over = [], set(), {}
    for word in happened.split():
        write, stamp, end = (form.fullmatch(word) for form in (_WRITE, _STAMP, _END))
        if write:
            writes.append(Write(*map(int, write.groups())))
        elif stamp and word.startswith("?"):
            unknown.add(Stamp(*map(int, stamp.groups())))
        elif end:
            over[int(end[1])] = int(end[2])
        else:
            raise ValueError(f"{word!r} is not of the language")
    return Story(writes, frozenset(unknown), _read_stamp(found.strip()), found.strip() != "nothing", over)


def _read_stamp(word: str) -> Stamp | None:
    if word in ("stranger", "nothing"):
        return None
    if word == "preload":
        return PRELOADED
    stamp = _STAMP.fullmatch(word)
    if not stamp:
        raise ValueError(f"{word!r} can't be found")
    return Stamp(*map(int, stamp.groups()))


def judge(story: Story) -> Check:
    missing = () if story.is_there else ("k",)
    return check_keys(story.history(), story.rows(), missing)


ACCEPTED = [
    # no writes
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
    # one write begins at the very moment at which the other ends
    "1w5@10-20 2w7@20-30 -> 1w5",
    # under way when its worker died: done, or not
    "?1w5 -> 1w5",
    "?1w5 -> preload",
    "1w5@10-20 ?1w6 -> 1w6",
    "1w5@10-20 ?1w6 -> 1w5",
    "1w5@10-20 ?2w9 -> 2w9",
    "1w5@10-20 ?2w9 -> 1w5",
    # another worker's write had begun when the dead worker ended, so they may have overlapped
    "1w5@10-20 ?2w9 x2@10 -> 2w9",
    "1w5@10-20 ?2w9 x2@15 -> 2w9",
    "1w5@10-20 ?2w9 x2@5 -> 1w5",
]


def stale(found: str, later: str) -> str:
    """Return the objection to a write that was read although a later write had begun after its end."""
    one, other = (
        f"worker {worker}'s write {number}" for worker, number in (found.split("w"), later.split("w"))
    )
    return f"holds {one}, but {other} began after that one completed"


REJECTED = [
    # lost: the value from before is back
    ("1w5@10-20 -> preload", "holds its earlier value, but worker 1's write 5 was acknowledged"),
    # lost: several writes, the value from before is back
    ("1w5@10-20 2w7@30-40 -> preload", "holds its earlier value, but worker 2's write 7 was acknowledged"),
    # lost: another worker's write began after the dead worker had ended
    (
        "1w5@10-20 ?2w9 x2@9 -> 2w9",
        "holds write 9 of worker 2, who died in it, but worker 1's write 5 began after that",
    ),
    # lost, though another write was under way
    ("1w5@10-20 ?2w9 -> preload", "holds its earlier value, but worker 1's write 5 was acknowledged"),
    # stale: an older write of the same worker
    ("1w5@10-20 1w6@20-30 -> 1w5", "holds worker 1's write 5, but write 6 is its last acknowledged one"),
    # stale: another worker wrote later, in any order, and a moment after the end
    ("1w5@10-20 2w7@30-40 -> 1w5", stale("1w5", "2w7")),
    ("2w7@10-20 1w5@30-40 -> 2w7", stale("2w7", "1w5")),
    ("1w5@10-40 2w7@20-30 3w9@41-50 -> 1w5", stale("1w5", "3w9")),
    ("1w5@10-20 2w7@21-30 -> 1w5", stale("1w5", "2w7")),
    # never acknowledged and not under way
    ("1w5@10-20 -> 1w6", "holds worker 1's write 6, but write 5 is its last acknowledged one"),
    # a worker who wrote nothing
    ("2w7@10-20 -> 1w1", "holds worker 1's write 1, but none of its writes was acknowledged"),
    # a worker who does not exist, and worker 0, who preloads and does not write
    ("1w5@10-20 -> 9w1", "holds a value of worker 9, who does not exist"),
    ("1w5@10-20 -> 0w5", "holds a value of worker 0, who does not exist"),
    # foreign, or gone, also without any write
    ("1w5@10-20 -> stranger", "holds a value that nobody wrote"),
    ("-> stranger", "holds a value that nobody wrote"),
    ("1w5@10-20 -> nothing", "is gone"),
    ("-> nothing", "is gone"),
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_possible_answer_of_a_correct_store_is_accepted(text: str) -> None:
    check = judge(read(text))
    assert (check.status, check.problems, check.counterexamples) == ("ok", 0, ())
    assert check.checked == SLOTS


@pytest.mark.parametrize(("text", "reason"), REJECTED)
def test_impossible_answer_is_rejected_with_the_reason(text: str, reason: str) -> None:
    check = judge(read(text))
    assert (check.status, check.problems) == ("failed", 1)
    assert check.counterexamples == (f"key k {reason}",)


def possible(story: Story) -> bool:
    """Search all possible orders of the writes for an order that ends in the read value."""
    if story.found == PRELOADED:
        return not story.writes
    return any(_stamp(order[-1]) == story.found for order in permutations(story.writes) if _can_be(order))


def _stamp(write: Write) -> Stamp:
    return Stamp(write.worker, write.sequence)


def _can_be(order: tuple[Write, ...]) -> bool:
    """Return whether the order is possible: no write precedes a write that had ended when it began."""
    return not any(
        later.end < earlier.begin or (later.worker == earlier.worker and later.sequence < earlier.sequence)
        for index, later in enumerate(order)
        for earlier in order[:index]
    )


@st.composite
def random_stories(draw: st.DrawFn) -> Story:
    """Draw up to five writes by up to three workers, each of which does one write after another."""
    writes = []
    for worker in range(1, draw(st.integers(1, 3)) + 1):
        times = sorted(draw(st.lists(st.integers(1, 12), min_size=2, max_size=4, unique=True)))
        writes += [Write(worker, number, *span) for number, span in enumerate(pairwise(times), 1)]
    writes = draw(st.permutations(writes))[:5]
    writes.sort(key=lambda write: (write.worker, write.sequence))
    found = draw(st.sampled_from([*map(_stamp, writes), PRELOADED]))
    return Story(writes, frozenset(), found, is_there=True)


@settings(max_examples=examples(5))
@given(random_stories())
def test_every_story_is_judged_as_an_exhaustive_search_judges_it(story: Story) -> None:
    assert (judge(story).status == "ok") is possible(story)


def test_slots_are_judged_independently() -> None:
    story = read("1w5@10-20 -> 1w5")
    history = story.history()
    rows = [("a", 0, Stamp(1, 5)), ("b", 1, Stamp(1, 5)), ("c", 2, PRELOADED)]
    check = check_keys(history, rows, [])
    assert check.problems == 1
    assert check.counterexamples[0].startswith("key a holds worker 1's write 5")


def test_untracked_key_has_only_to_hold_a_value_of_the_trial() -> None:
    history = read("1w5@10-20 -> 1w5").history()
    rows = [("a", None, Stamp(1, 99)), ("b", None, PRELOADED), ("c", None, None)]
    check = check_keys(history, rows, [], "half of the keys")
    assert check.counterexamples == ("key c holds a value that nobody wrote",)
    assert (check.checked, check.note) == (3, "half of the keys")


def test_all_problems_are_counted_and_the_first_ones_reported() -> None:
    history = read("-> preload").history()
    check = check_keys(history, [(str(number), None, None) for number in range(50)], ["x", "y"])
    assert check.problems == 52
    assert len(check.counterexamples) == MAX_COUNTEREXAMPLES
    assert check.counterexamples[0] == "key 0 holds a value that nobody wrote"


def test_check_without_keys_is_skipped_and_partial_check_has_a_note() -> None:
    assert CheckCounter("empty").check().status == "skipped"
    assert check_keys(ReadHistory([], [], [], []), [("a", None, PRELOADED)], []) == Check(
        "last write", "ok", 1
    )


def test_writes_of_workers_that_died_at_a_known_time_have_an_end() -> None:
    outcomes = [
        Outcome(1, died=True, findings=None, over_ns=70),
        Outcome(2, died=True, findings=None),
        Outcome(3, died=False, findings=Findings(), over_ns=90),
    ]
    assert death_times(outcomes) == {1: 70}


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
def test_counters_may_include_acknowledged_updates_and_updates_under_way(
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
        ({"a": 10, "b": None}, 0, ["counter b is None, which is not a number of updates"]),
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
def test_lost_and_unexplained_updates_fail_with_reasons(
    found: dict[str, int | None], in_flight: int, reasons: list[str]
) -> None:
    check = check_counters(found, TOLD, in_flight)
    assert check.status == "failed"
    assert list(check.counterexamples) == reasons


def test_unfinished_write_to_one_key_does_not_excuse_another_key() -> None:
    history = ReadHistory([[0, 0]], [[0, 0]], [[0, 0]], [0, 0], {Stamp(1, 5): 0})
    assert check_keys(history, [("a", 0, Stamp(1, 5)), ("b", 1, PRELOADED)], []).status == "ok"
    check = check_keys(history, [("a", 0, PRELOADED), ("b", 1, Stamp(1, 5))], [])
    assert (check.status, check.problems) == ("failed", 1)
