"""Overlaps: a thread writes in, or ends, a transaction that another thread began.

If two threads share a connection, with a lock only around each statement, their transactions become one: a
ROLLBACK of one thread undoes writes of the other.

There is no overlap if one thread hands its transaction over to another, as thread pools do for the functions
of a web request. So an overlap is certain only if the first thread is still in the same call of the user's
function, does not wait for other threads, and uses the connection again in that call.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from types import CodeType, FrameType
from typing import NamedTuple, Protocol

from sqlstress.recording import OVERLAP, PlainObservation
from sqlstress.recording.failures import MAX_KINDS, is_write, short_sql, statement_kind, words_of
from sqlstress.recording.threads import waits_for_threads

ActiveCalls = dict[tuple[int, CodeType], int]
"""Current line of each running function of the user, by frame id and code; innermost first."""


class CallFinder(Protocol):
    """Finder of the user's running functions; `callers.UserFrames` implements it."""

    def active_calls(self, frame: FrameType | None) -> ActiveCalls:
        """Return the user's functions on the call stack of `frame`, with their current lines."""


class _Use(NamedTuple):
    """Statement that a thread is about to run."""

    thread: int
    calls: ActiveCalls
    sql: str

    def line(self, depth: int) -> str:
        """Return the current line of one of the thread's functions, such as "bank.py:27"; or "".

        `depth` is 0 for the innermost function, and 1 for its caller. If no function is so far out, the
        result is the line of the outermost function.
        """
        calls = [*self.calls.items()]
        if not calls:
            return ""
        (_, code), number = calls[min(depth, len(calls) - 1)]
        return f"{Path(code.co_filename).name}:{number}"


class _Overlap:
    """Overlap: a thread began a transaction by `first`, and another thread ran `then` in it."""

    def __init__(self, first: _Use, then: _Use) -> None:
        self.first, self.then = first, then
        self.end: _Use | None = None
        """COMMIT or ROLLBACK of the transaction; None before its end."""
        self.is_certain = False
        """Whether the thread of `first` used the connection again in the same call."""

    def traits(self) -> dict[str, str]:
        """Return both statements and the end of the transaction, with lines, for the report."""
        # If one function runs all statements, the report shows the lines of its callers, which differ.
        depth = int(self.first.line(0) == self.then.line(0))
        return {
            "first": short_sql(self.first.sql),
            "first_at": self.first.line(depth),
            "then": short_sql(self.then.sql),
            "then_at": self.then.line(depth),
            "end": (words_of(self.end.sql)[0] if self.end else "").replace("END", "COMMIT"),
            "end_at": self.end.line(depth) if self.end else "",
        }


class Overlaps:
    """Overlapping transactions in this process, counted by their statements and lines."""

    def __init__(self, finder: CallFinder) -> None:
        self._finder = finder
        self._counts = Counter[tuple[tuple[str, str], ...]]()

    def new_watch(self) -> OverlapWatch:
        """Return a new watch for a connection that several threads use."""
        return OverlapWatch(self._finder, self._add)

    def _add(self, overlap: _Overlap) -> None:
        kind = tuple(overlap.traits().items())
        if kind in self._counts or len(self._counts) < MAX_KINDS:
            self._counts[kind] += 1

    def records(self) -> list[PlainObservation]:
        """Return an observation for each kind of overlap, with its count."""
        return [(OVERLAP, "", count, "", dict(kind)) for kind, count in self._counts.items()]


class OverlapWatch:
    """Observer of a connection that several threads use, which finds overlapping transactions."""

    def __init__(self, finder: CallFinder, add: Callable[[_Overlap], None]) -> None:
        self._finder, self._add = finder, add
        self._first: _Use | None = None
        """Statement that began the current transaction; None if unknown."""
        self._open: list[_Overlap] = []
        """Overlaps in the current transaction, and earlier overlaps that are not certain yet."""

    def note(self, frame: FrameType, sql: object, *, in_transaction: bool) -> None:
        """Handle a statement that this thread is about to run in our method with the stack frame `frame`."""
        if not isinstance(sql, str) or not self._is_of_interest(sql, in_transaction=in_transaction):
            return
        use = _Use(get_ident(), self._finder.active_calls(frame), sql)
        for overlap in self._open:
            is_back = overlap.first.thread == use.thread and overlap.first.calls.keys() & use.calls.keys()
            overlap.is_certain = overlap.is_certain or bool(is_back)
        if not in_transaction:
            self._count_certain_overlaps()
            self._first = use
            return
        ends = statement_kind(sql) == "commit" or words_of(sql) == ("ROLLBACK", "")
        if (is_write(sql) or ends) and self._interrupts(use):
            assert self._first
            self._open.append(_Overlap(self._first, use))
        for overlap in self._open if ends else ():
            overlap.end = overlap.end or use

    def _is_of_interest(self, sql: str, *, in_transaction: bool) -> bool:
        # The search for running functions takes twice as long as a short query, so most statements skip it.
        if self._open:
            return True
        if in_transaction:
            return self._first is not None and self._first.thread != get_ident()
        self._first = None
        return statement_kind(sql) in ("begin", "write")

    def _interrupts(self, use: _Use) -> bool:
        """Return whether another thread began the transaction, and is still working in that call."""
        first = self._first
        if not first or first.thread == use.thread or any(known.first is first for known in self._open):
            return False
        frame = sys._current_frames().get(first.thread)
        calls = self._finder.active_calls(frame)
        return bool(calls.keys() & first.calls.keys()) and not waits_for_threads(frame)

    def _count_certain_overlaps(self) -> None:
        for overlap in self._open:
            if overlap.is_certain:
                self._add(overlap)
        # The number of uncertain overlaps is limited, as some threads never use the connection again.
        self._open = [overlap for overlap in self._open if not overlap.is_certain][-MAX_KINDS:]
