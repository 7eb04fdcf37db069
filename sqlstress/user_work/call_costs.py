"""Connections and commits of calls of the user's code: each costs time that few applications expect."""

from __future__ import annotations

from time import perf_counter

from sqlstress.user_work import CALL_COST
from sqlstress.user_work.source import PlainObservation


class CallCosts:
    """Counts of one process: of the current call, and their sums by call."""

    def __init__(self) -> None:
        self.connections = self.commits = 0
        """Numbers in the current call."""
        self.opening_s = 0.0
        """Time in which the current call has opened connections, with their first statements."""
        self._begun_s = 0.0
        self._calls: dict[str, int] = {}
        self._sums: dict[str, tuple[float, int, float, int]] = {}
        """Seconds, connections, seconds of opening them, and commits of the calls with such costs."""

    def add_connection(self, seconds: float) -> None:
        """Count a connection that took this time to open."""
        self.connections += 1
        self.opening_s += seconds

    def begin(self) -> None:
        """Begin a call."""
        self.connections = self.commits = 0
        self.opening_s, self._begun_s = 0.0, perf_counter()

    def end(self, name: str) -> None:
        """End a call, and add its costs: nothing if it opened no connection and committed at most once.

        A commit is counted with the next statement, so the last one may belong to the next call.
        """
        self._calls[name] = self._calls.get(name, 0) + 1
        if self.connections or self.commits > 1:
            seconds, connections, opening_s, commits = self._sums.get(name, (0.0, 0, 0.0, 0))
            self._sums[name] = (
                seconds + perf_counter() - self._begun_s,
                connections + self.connections,
                opening_s + self.opening_s,
                commits + self.commits,
            )

    def records(self) -> list[PlainObservation]:
        """Return the sums of each call that opened a connection or committed several times."""
        return [
            (
                CALL_COST,
                name,
                self._calls[name],
                "",
                {
                    "seconds": f"{seconds:.6g}",
                    "connections": f"{connections}",
                    "opening_s": f"{opening_s:.6g}",
                    "commits": f"{commits}",
                },
            )
            for name, (seconds, connections, opening_s, commits) in self._sums.items()
        ]
