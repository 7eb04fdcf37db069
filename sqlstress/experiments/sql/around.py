"""What is done around the statements of a script: they are timed, and a row of ours proves their commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.statistics.histogram import Recorder

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.experiments.sql.ledger import Ledger
    from sqlstress.experiments.sql.script.compiling import Step
    from sqlstress.experiments.sql.script.reckoning import Variables
    from sqlstress.experiments.sql.script.tree import Sql

_LONGEST = 60


class Nowhere:
    """A database that does nothing: what remains is the harness's own cost."""

    def runs(self, sql: str) -> Callable[[Variables], Any]:
        return _nothing

    def reads(self, sql: str) -> Callable[[Variables], Any]:
        return _nothing

    def names(self, sql: str) -> Callable[[Variables], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        return lambda _: ((), ((),))


def _nothing(_: Variables) -> None:
    pass


class Around:
    """Times statements, and writes into the ledger before a commit, as far as that is asked for."""

    def __init__(self, ledger: Ledger | None, times: dict[str, Times] | None) -> None:
        self._ledger, self._times = ledger, times

    def statement(self, sql: Sql, run: Step) -> Step:
        timed = self._timed(sql, run)
        return self._ledger.committed(timed) if self._ledger and sql.statement.commits else timed

    def _timed(self, sql: Sql, run: Step) -> Step:
        if self._times is None:
            return run
        keep = self._times.setdefault(called(sql), Times()).add
        clock = time.perf_counter_ns

        def timed(variables: Variables) -> None:
            begun = clock()
            run(variables)
            keep((begun, clock()))

        return timed


class Times:
    """How long a statement took, and when it ended."""

    def __init__(self) -> None:
        self._recorder, self._found = Recorder(), list[tuple[int, int]]()
        self.add = self._found.append

    def fold(self, window: Window) -> None:
        """Keep what ended within the window."""
        opens, closes = window.opens_ns, window.closes_ns
        self._recorder.record([end - begun for begun, end in self._found if opens <= end < closes])
        self._found.clear()

    def histogram(self) -> tuple[dict[int, int], int]:
        """Return the histogram, and the longest, in nanoseconds."""
        buckets = self._recorder.buckets()
        return buckets, self._recorder.largest() if buckets else 0


def called(sql: Sql) -> str:
    """Return what a statement is called: its line, and how it begins."""
    text = " ".join(sql.statement.text.split())
    return f"{Path(sql.place.file).name}:{sql.place.line} {text}"[:_LONGEST]
