"""What histories show: some written by hand, some drawn, each accepted or rejected by its right name.

A history is a line, with a word for each transaction: "rx1,wx2" reads version 1 of x and writes version 2. Of
one that was rolled back the word ends in "!". All overlap in time, except where "|" parts them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.experiments.sql.anomalies import KINDS, Row, Transaction, Version, anomalies
from tests.drawing import examples

_ACCESS = re.compile(r"([rw])([a-z])(\d+)")


def history(text: str) -> list[Transaction]:
    """Return the transactions of a text."""
    found = []
    for era, words in enumerate(text.split("|")):
        for word in words.split():
            accesses = [(kind, (("t", row), int(version))) for kind, row, version in _ACCESS.findall(word)]
            reads = [one for kind, one in accesses if kind == "r"]
            writes = [one for kind, one in accesses if kind == "w"]
            is_undone = word.endswith("!")
            undone, writes = (writes, []) if is_undone else ([], writes)
            found.append(Transaction(10 * era, 10 * era + 5, [] if is_undone else reads, writes, undone))
    return found


def kinds(text: str, is_whole: bool = True) -> list[str]:
    return [one.kind for one in anomalies(history(text), is_whole)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rx1,ry1",
        "rx1,wx2 rx2,wx3 rx3",
        "rx1,wx2,rx2,wx3 rx3",  # its own write is read, and replaced, by itself
        "rx1,ry1 wx2,wy2 rx2,ry2",
        "rx1,wx2 rx1",  # who only reads may have come first
        "rx1,wx2 rx1,wx2! rx2,wx3",  # nobody sees what was rolled back
        "wx2 rx5,wx6 rx1",  # versions between are not known
        "wx2 wx3,wy2 ry2,rx3",
        "wx2|rx2,wx3|rx3",
        "rx1,ry1,wx2 rx2,ry1,wy2",  # the same two rows, one after the other
    ],
)
def test_what_some_order_of_whole_transactions_gives_is_accepted(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize(
    ("text", "kind", "edges"),
    [
        ("rx1,wx2 rx1,wx3", "lost-update", "rw 1 0 x 1 2, ww 0 1 x 2 3"),
        ("wx2 rx1,wx3", "lost-update", "rw 1 0 x 1 2, ww 0 1 x 2 3"),  # who wrote need not have read
        ("wx2 ry1,rx1,wx3", "lost-update", "rw 1 0 x 1 2, ww 0 1 x 2 3"),
        ("rx1,wx4 wx2 wx3", "lost-update", "rw 0 1 x 1 2, ww 1 0 x 2 4"),
        ("rx1,ry2 wx2,wy2", "read-skew", "rw 0 1 x 1 2, wr 1 0 y 2 2"),
        ("rx1,rx2 wx2", "read-skew", "rw 0 1 x 1 2, wr 1 0 x 2 2"),  # a read that can't be repeated
        ("rx1,wy3 wx2,wy2", "read-skew", "rw 0 1 x 1 2, ww 1 0 y 2 3"),
        ("rx1,ry2 wx2 rx2,wy2", "read-skew", "rw 0 1 x 1 2, wr 1 2 x 2 2, wr 2 0 y 2 2"),
        ("rx1,ry2 wx2 wx3,wy2", "read-skew", "rw 0 2 x 1 3, wr 2 0 y 2 2"),  # one step from x 1 to x 3
        ("rx1,rq2 wx2,wy2 wy3,wq2", "read-skew", "rw 0 1 x 1 2, ww 1 2 y 2 3, wr 2 0 q 2 2"),
        ("rx1,wy3|wx2 rx2,wy2", "read-skew", "rw 0 1 x 1 2, wr 1 2 x 2 2, ww 2 0 y 2 3"),  # out of time
        ("rx1,ry1,wx2 rx1,ry1,wy2", "write-skew", "rw 0 1 y 1 2, rw 1 0 x 1 2"),
        ("rx1,wy2 ry1,wx2", "write-skew", "rw 0 1 x 1 2, rw 1 0 y 1 2"),
        ("rx1,wy2 ry1,wz2 rz1,wx2", "write-skew", "rw 0 2 x 1 2, rw 2 1 z 1 2, rw 1 0 y 1 2"),
        ("rx1,wx2! rx2", "aborted-read", "wr 0 1 x 2 2"),
        ("wx2,wx3 rx2", "intermediate-read", "wr 0 1 x 2 2, rw 1 0 x 2 3"),
        ("wx2,ry2 wy2,rx2", "circular-flow", "wr 0 1 x 2 2, wr 1 0 y 2 2"),
        ("wx2,rz2 wy2,rx2 wz2,ry2", "circular-flow", "wr 0 1 x 2 2, wr 1 2 y 2 2, wr 2 0 z 2 2"),
        ("wx2,wy3 wx3,wy2", "dirty-write", "ww 0 1 x 2 3, ww 1 0 y 2 3"),
        ("rx1,wx2 rx1,wx2", "lost-write", "ww 0 1 x 2 2"),
        ("wx2|rx1", "stale-read", "rw 1 0 x 1 2"),
    ],
)
def test_each_anomaly_has_its_name_and_its_witnesses(text: str, kind: str, edges: str) -> None:
    (found,) = anomalies(history(text))
    assert (found.kind, found.times) == (kind, 1)
    told = [" ".join(map(str, (*edge[:3], edge.row[1], *edge[4:]))) for edge in found.edges]
    # A ring may begin anywhere.
    first = told.index(edges.split(", ")[0])
    assert ", ".join(told[first:] + told[:first]) == edges


def test_a_circle_is_found_beside_other_anomalies() -> None:
    for circle in ("wx2,ry2 wy2,rx2", "wx2,rz2 wy2,rx2 wz2,ry2"):
        assert kinds(f"{circle} rq1,wq2 rq1,wq3") == ["circular-flow", "lost-update"]


def test_keys_are_of_any_type_and_writes_in_any_order() -> None:
    rows: list[Row] = [("t", 1), ("t", "a"), ("t", None), ("u", 1.5)]
    writes = [(row, version) for version in (3, 2) for row in rows]
    reader = Transaction(0, 5, reads=[(row, 3) for row in rows])
    assert anomalies([Transaction(0, 5, writes=writes), reader]) == []


def test_who_waits_is_heard_often() -> None:
    pulses: list[None] = []
    anomalies(history("rx1 " * 2001), pulse=lambda: pulses.append(None))
    assert 5 < len(pulses) < 50


def test_a_read_skew_and_a_write_skew_are_told_apart_in_one_history() -> None:
    assert kinds("rx1,ry1,wx2 rx1,ry1,wy2 ra1,rb2 wa2,wb2") == ["read-skew", "write-skew"]


def test_who_wrote_is_not_known_where_the_history_is_not_whole() -> None:
    assert kinds("wx2! rx2") == ["aborted-read"]
    assert kinds("wx2! rx2", is_whole=False) == []


def test_pairs_are_counted_and_the_shortest_cycle_is_the_witness() -> None:
    (found,) = anomalies(history("ra1,rb2 wa2 ra2,wb2 rx1,ry2 wx2,wy2 rz1,rz2 wz2"))
    assert (found.kind, found.times, len(found.edges)) == ("read-skew", 3, 2)


# Drawn: what one process does alone is serial, and one planted anomaly is found in it.


@dataclass
class Store:
    """Rows with versions, on which transactions work one after the other."""

    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys("abcdef", 1))
    done: list[Transaction] = field(default_factory=list)

    def run(self, accesses: list[tuple[bool, str]], is_undone: bool) -> None:
        before = self.versions.copy()
        reads: list[Version] = []
        writes: list[Version] = []
        for writes_it, row in accesses:
            self.versions[row] += writes_it
            (writes if writes_it else reads).append((("t", row), self.versions[row]))
        if is_undone:
            self.versions = before
        now = 10 * len(self.done)
        undone, writes = (writes, []) if is_undone else ([], writes)
        self.done.append(Transaction(now, now + 5, [] if is_undone else reads, writes, undone))

    def plant(self, text: str) -> None:
        """Let the transactions of a text meet in rows of their own."""
        now = 10 * len(self.done)
        self.done += [one._replace(begin_ns=now, end_ns=now + 5) for one in history(text)]


Drawn = list[tuple[list[tuple[bool, str]], bool]]
_TRANSACTION = st.tuples(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=6), st.booleans()
)
_TRANSACTIONS = st.lists(_TRANSACTION, max_size=30)


@given(_TRANSACTIONS, st.randoms())
def test_what_was_done_one_after_the_other_is_accepted_in_whatever_order_it_is_told(
    drawn: Drawn, random: Random
) -> None:
    store = Store()
    for accesses, is_undone in drawn:
        store.run(accesses, is_undone)
    random.shuffle(store.done)
    assert anomalies(store.done) == []


@given(
    _TRANSACTIONS,
    _TRANSACTIONS,
    st.sampled_from(
        [
            ("rx1,wx2 rx1,wx3", "lost-update"),
            ("rx1,ry2 wx2,wy2", "read-skew"),
            ("rx1,ry1,wx2 rx1,ry1,wy2", "write-skew"),
            ("wx2,ry2 wy2,rx2", "circular-flow"),
            ("wx2,wx3 rx2", "intermediate-read"),
            ("wx2! rx2", "aborted-read"),
        ]
    ),
)
def test_one_planted_anomaly_is_found_and_nothing_else(
    before: Drawn, after: Drawn, planted: tuple[str, str]
) -> None:
    store = Store()
    text, kind = planted
    for accesses, is_undone in before:
        store.run(accesses, is_undone)
    store.plant(text)
    for accesses, is_undone in after:
        store.run(accesses, is_undone)
    assert [(one.kind, one.times) for one in anomalies(store.done)] == [(kind, 1)]


# Drawn at random, against trying every order.


@st.composite
def _any_history(draw: st.DrawFn) -> list[Transaction]:
    """Draw up to five transactions, each of which writes a row once at most, before or after it reads."""
    count = draw(st.integers(1, 5))
    reads: list[list[Version]] = [[] for _ in range(count)]
    writes: list[list[Version]] = [[] for _ in range(count)]
    for row in (("t", "x"), ("t", "y")):
        writers = draw(st.lists(st.sampled_from(range(count)), unique=True))
        for version, writer in enumerate(writers, 2):
            writes[writer].append((row, version))
        for reader in draw(st.lists(st.sampled_from(range(count)), max_size=4)):
            reads[reader].append((row, draw(st.integers(1, len(writers) + 1))))
    return [Transaction(0, 5, *done) for done in zip(reads, writes, strict=True)]


def _gives(order: tuple[Transaction, ...]) -> bool:
    """Return whether this is what whole transactions do in this order."""
    now: dict[Row, int] = {}
    for one in order:
        own = dict(one.writes)
        if any(version not in (now.get(row, 1), own.get(row)) for row, version in one.reads):
            return False
        if any(version != now.get(row, 1) + 1 for row, version in one.writes):
            return False
        now |= own
    return True


@settings(max_examples=examples(10))
@given(_any_history())
def test_a_history_is_accepted_if_and_only_if_some_order_gives_it(drawn: list[Transaction]) -> None:
    assert (anomalies(drawn) == []) == any(map(_gives, permutations(drawn)))


def test_every_kind_is_written_by_hand_at_least_once() -> None:
    (mark,) = test_each_anomaly_has_its_name_and_its_witnesses.pytestmark  # type: ignore[attr-defined]
    assert {kind for _, kind, _ in mark.args[1]} == set(KINDS)
