"""Connections and commits of calls of the user's code: each costs time that few applications expect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from sqlstress.user_work import CALL_COST
from sqlstress.user_work.source import PlainObservation


class CallCosts:
    """Sums of one process, by call."""

    def __init__(self) -> None:
        self.connections = self.commits = 0
        self.opening_s = 0.0
        self._calls: dict[str, list[float]] = {}

    def add_connection(self, seconds: float) -> None:
        """Count a connection that took this time to open."""
        self.connections += 1
        self.opening_s += seconds

    @contextmanager
    def attribute(self, name: str) -> Iterator[None]:
        """Attribute the costs of the block to a call.

        A commit is counted with the next statement, so the last one may belong to the next call.
        """
        begun_s, before = perf_counter(), self._sums()
        try:
            yield
        finally:
            changes = (new - old for new, old in zip(self._sums(), before, strict=True))
            cost = (1, perf_counter() - begun_s, *changes)
            sums = self._calls.get(name, [0.0] * len(cost))
            self._calls[name] = [old + new for old, new in zip(sums, cost, strict=True)]

    def _sums(self) -> tuple[float, ...]:
        return self.connections, self.opening_s, self.commits

    def records(self) -> list[PlainObservation]:
        """Return the sums of each call that opened a connection or committed."""
        return [
            (
                CALL_COST,
                name,
                int(calls),
                "",
                {
                    "seconds": f"{seconds:.6g}",
                    "connections": f"{connections:.0f}",
                    "opening_s": f"{opening_s:.6g}",
                    "commits": f"{commits:.0f}",
                },
            )
            for name, (calls, seconds, connections, opening_s, commits) in self._calls.items()
            if connections or commits
        ]
