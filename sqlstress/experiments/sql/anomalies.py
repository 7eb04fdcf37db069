"""What a history shows of isolation: cycles of dependencies between transactions, each with its witnesses.

A history is what transactions read and wrote: rows, and which version of each. Versions of a row are ordered,
so of two transactions that met in a row it is known which came first:

- ww: one wrote a version, the other the next one that is known;
- wr: one wrote a version, the other read it;
- rw: one read a version, the other wrote the next one that is known.

No order of whole transactions gives what a cycle of these shows. Which anomaly it is, the number of its rw
tells. What is unknown leaves edges out, and makes none: a cycle that is found is one.

Sources: Adya, "Weak Consistency: A Generalized Theory and Optimistic Implementations for Distributed
Transactions", MIT 1999; Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
Observations", VLDB 2020.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

LOST_WRITE, STALE_READ, ABORTED_READ, INTERMEDIATE_READ, DIRTY_WRITE, CIRCULAR = (
    *("lost-write", "stale-read", "aborted-read", "intermediate-read", "dirty-write", "circular-flow"),
)
LOST_UPDATE, READ_SKEW, WRITE_SKEW = "lost-update", "read-skew", "write-skew"
KINDS = (
    *(LOST_WRITE, STALE_READ, ABORTED_READ, INTERMEDIATE_READ, DIRTY_WRITE, CIRCULAR),
    *(LOST_UPDATE, READ_SKEW, WRITE_SKEW),
)
"""The gravest first. With Adya's names: a version that was written twice; a read of what had been replaced
before the transaction began; G1a; G1b; G0; G1c; two kinds of G-single; and G2-item."""
PREVENTED = {
    "read-committed": KINDS[: KINDS.index(LOST_UPDATE)],
    "repeatable-read": KINDS[: KINDS.index(WRITE_SKEW)],
    "serializable": KINDS,
}
"""What each isolation level does not let happen; repeatable read is PostgreSQL's, a snapshot."""
TRIED = "tried"
"""The sighting of how much was looked at, beside those of anomalies."""

_BETWEEN_PULSES = 1000

Row = tuple[str, Any]
"""Its table and its key."""
Version = tuple[Row, int]


class Transaction(NamedTuple):
    """What one transaction did. What it has undone, nobody may see."""

    begin_ns: int
    """Before its first statement, on the clock that all have in common."""
    end_ns: int
    """After its last one was answered."""
    reads: Sequence[Version] = ()
    writes: Sequence[Version] = ()
    undone: Sequence[Version] = ()


class Edge(NamedTuple):
    """Why one transaction comes before another: what each did with a row."""

    kind: str
    """ww, wr or rw."""
    first: int
    """The number of the one that comes first."""
    second: int
    row: Row
    version: int
    """Which version the first one wrote, or read."""
    after: int
    """Which one the second wrote, or read."""


class Anomaly(NamedTuple):
    """One kind of what was found."""

    kind: str
    times: int
    """How many pairs of transactions show it. Longer cycles are counted only if they have a single rw; of any
    others one is found, if nothing else is."""
    edges: tuple[Edge, ...]
    """The first of the shortest: a cycle, or for what is none, the one edge that shows it."""


def anomalies(
    transactions: Sequence[Transaction], is_whole: bool = True, pulse: Callable[[], None] = lambda: None
) -> list[Anomaly]:
    """Return what a history shows, the gravest first; calls `pulse` often.

    `is_whole`: all transactions that can have written are in it; else an aborted read can't be told.
    """
    history = _History(transactions, pulse)
    found: dict[str, tuple[int, tuple[Edge, ...]]] = {}
    parts = [history.written_twice(), history.stale_reads(), history.pairs(), history.longer()]
    if is_whole:
        parts.append(history.aborted_reads())
    for kind, edges in chain.from_iterable(parts):
        times, shortest = found.get(kind, (0, edges))
        found[kind] = times + 1, min(shortest, edges, key=len)
    if not found:
        found.update((kind, (1, edges)) for kind, edges in history.any_cycle())
    return [Anomaly(kind, *found[kind]) for kind in KINDS if kind in found]


Found = Iterator[tuple[str, tuple[Edge, ...]]]


class _History:
    """The transactions by their numbers, and which came before which."""

    def __init__(self, transactions: Sequence[Transaction], pulse: Callable[[], None]) -> None:
        self._all, self._pulse = transactions, pulse
        self._writers: dict[Version, int] = {}
        self._twice: list[Edge] = []
        self._last = [dict(sorted(one.writes, key=itemgetter(1))) for one in transactions]
        """The version of each row that others are to see: the last one, of several."""
        self._known: dict[Row, list[int]] = {}
        """Those versions of each row, in their order."""
        for number, one in enumerate(transactions):
            for row, version in one.writes:
                other = self._writers.setdefault((row, version), number)
                if other != number:
                    self._twice.append(Edge("ww", other, number, row, version, version))
                elif self._last[number][row] == version:
                    self._known.setdefault(row, []).append(version)
        for versions in self._known.values():
            versions.sort()
        self._after: list[dict[int, Edge]] = [{} for _ in transactions]
        """By transaction, those that read what it wrote, or replaced it."""
        self._missed: list[dict[int, Edge]] = [{} for _ in transactions]
        """By transaction, those that replaced what it had read."""
        for number in self._numbers():
            for edge in self._edges(number):
                kept = self._missed if edge.kind == "rw" else self._after
                kept[edge.first].setdefault(edge.second, edge)

    def _numbers(self) -> Iterator[int]:
        """Yield the number of each transaction."""
        for number in range(len(self._all)):
            if number % _BETWEEN_PULSES == 0:
                self._pulse()
            yield number

    def _next(self, row: Row, version: int) -> int | None:
        """Return the next version of a row that is known."""
        versions = self._known.get(row, [])
        place = bisect_right(versions, version)
        return versions[place] if place < len(versions) else None

    def _edges(self, number: int) -> Iterator[Edge]:
        """Yield why a transaction comes before others, and others before it by what it read."""
        one = self._all[number]
        for row, version in one.reads:
            writer = self._writers.get((row, version), number)
            if writer != number:
                yield Edge("wr", writer, number, row, version, version)
        for kind, versions in (("rw", one.reads), ("ww", self._last[number].items())):
            for row, version in versions:
                after = self._next(row, version)
                if after is not None and (other := self._writers[row, after]) != number:
                    yield Edge(kind, number, other, row, version, after)

    # What needs no cycle.

    def written_twice(self) -> Found:
        """Yield versions that two transactions have written: the row holds what one of them wrote."""
        return ((LOST_WRITE, (edge,)) for edge in self._twice)

    def stale_reads(self) -> Found:
        """Yield reads of what another transaction had replaced, which had ended before this one began."""
        for number in self._numbers():
            for other, edge in self._missed[number].items():
                if self._all[other].end_ns < self._all[number].begin_ns:
                    yield STALE_READ, (edge,)

    def aborted_reads(self) -> Found:
        """Yield reads of what nobody but a transaction that was rolled back has written."""
        undone = {one: number for number, each in enumerate(self._all) for one in each.undone}
        for number, each in enumerate(self._all):
            for row, version in each.reads:
                writer = undone.get((row, version), number)
                if writer != number and (row, version) not in self._writers:
                    yield ABORTED_READ, (Edge("wr", writer, number, row, version, version),)

    # Cycles.

    def pairs(self) -> Found:
        """Yield the cycles of two transactions."""
        for one in self._numbers():
            for other, edge in self._missed[one].items():
                back = self._after[other].get(one)
                if single := self._same_row(one, other):
                    yield single
                elif back:
                    yield READ_SKEW, (edge, back)
                elif one < other and other not in self._after[one] and (back := self._missed[other].get(one)):
                    yield WRITE_SKEW, (edge, back)
            for other, edge in self._after[one].items():
                if one < other and (back := self._after[other].get(one)):
                    yield _named((edge, back))

    def _same_row(self, one: int, other: int) -> tuple[str, tuple[Edge, ...]] | None:
        """Return what one row alone shows: a read of what the other one replaced itself, a lost update."""
        for row, version in self._all[one].reads:
            replaced, written = self._last[other].get(row), self._last[one].get(row)
            if replaced is None or version >= replaced:
                continue
            missed = Edge("rw", one, other, row, version, replaced)
            if self._writers.get((row, version)) == other:
                return INTERMEDIATE_READ, (Edge("wr", other, one, row, version, version), missed)
            if written is not None and replaced < written:
                return LOST_UPDATE, (missed, Edge("ww", other, one, row, replaced, written))
        return None

    def longer(self) -> Found:
        """Yield longer cycles: one without any rw, and the shortest with each rw that is the only one."""
        if len(cycle := _cycle(self._after)) > 2:
            yield _named(cycle)
        for one in self._numbers():
            for other, edge in self._missed[one].items():
                is_pair = one in self._after[other] or self._same_row(one, other)
                if not is_pair and (way := self._way(other, one)):
                    yield READ_SKEW, _joined((edge, *way))

    def _way(self, start: int, goal: int) -> tuple[Edge, ...]:
        """Return the shortest way by what depends on each other; nothing where there is none.

        What began when the goal had ended leads nowhere: nothing depends on what comes later.
        """
        until = self._all[goal].end_ns
        ways: dict[int, tuple[Edge, ...]] = {start: ()}
        queue = [start]
        for number in queue:
            for other, edge in self._after[number].items():
                if other == goal:
                    return *ways[number], edge
                if other not in ways and self._all[other].begin_ns < until:
                    ways[other] = *ways[number], edge
                    queue.append(other)
        return ()

    def any_cycle(self) -> Found:
        """Yield one cycle of any length, if there is one."""
        both = [{**missed, **after} for after, missed in zip(self._after, self._missed, strict=True)]
        if cycle := _cycle(both):
            yield _named(cycle)


def _cycle(edges: Sequence[dict[int, Edge]]) -> tuple[Edge, ...]:
    """Return a cycle; nothing where there is none."""
    sorter = TopologicalSorter[int]()
    for first, others in enumerate(edges):
        for second in others:
            sorter.add(second, first)
    try:
        sorter.prepare()
    except CycleError as error:
        return tuple(edges[first][second] for first, second in pairwise(error.args[1]))
    return ()


def _joined(way: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Return a way with one edge for what leads from version to version of the same row."""
    joined: list[Edge] = []
    for edge in way:
        last = joined[-1] if joined else None
        if last and edge.kind == "ww" and (edge.row, edge.version) == (last.row, last.after):
            joined[-1] = last._replace(second=edge.second, after=edge.after)
        else:
            joined.append(edge)
    return tuple(joined)


def _named(cycle: tuple[Edge, ...]) -> tuple[str, tuple[Edge, ...]]:
    """Return a cycle with what its kinds of edges are called."""
    kinds = Counter(edge.kind for edge in cycle)
    if kinds["rw"]:
        return (READ_SKEW if kinds["rw"] == 1 else WRITE_SKEW), cycle
    return (CIRCULAR if kinds["wr"] else DIRTY_WRITE), cycle
