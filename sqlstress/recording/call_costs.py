"""Costs of calls of the user's transactions: connections, commits, and long holds of the write lock.

A hold lasts from the end of the first statement that takes the write lock to the end of the transaction. The
statement's own time does not count, because the statement may have waited for the lock.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise
from time import perf_counter
from typing import NamedTuple

from sqlstress.recording import CALL_COST, LONG_HOLD, PlainObservation
from sqlstress.recording.failures import TimedStep, short_sql, takes_write_lock

MAX_KINDS = 20
"""Maximum number of different statements, by text and line, for which long holds are recorded."""


class CallCosts:
    """Counter of connections and commits, for the current call and in sum over this process's calls."""

    def __init__(self) -> None:
        self.connections = self.commits = 0
        """Numbers of connections and of commits in the current call."""
        self.opening_s = self.first_s = 0.0
        """Seconds to open connections in the current call, and run PRAGMAs and the first other statement.

        `first_s` has only the seconds of the first other statements.
        """
        self.begun_s = 0.0
        self.created = set[str]()
        """Files that the current call has created, such as a backup. Connections to them are not counted."""
        self.calls: dict[str, int] = {}
        """Number of calls, by name of the transaction."""
        self._sums: dict[str, tuple[float, int, float, float, int]] = {}
        """Sums over calls, by name of the transaction.

        Duration in seconds, connections, `opening_s`, `first_s`, commits. Only calls that opened a connection
        or committed more than once are included.
        """

    def add_connection(self, seconds: float, file: str, *, is_new: bool = False) -> None:
        """Count a connection to `file` that took `seconds` to open. `is_new`: whether it created the file."""
        if is_new:
            self.created.add(file)
        if file in self.created:
            return
        self.connections += 1
        self.opening_s += seconds

    def begin(self) -> None:
        """Reset the counts at the beginning of a call."""
        self.connections = self.commits = 0
        self.opening_s, self.first_s, self.begun_s = 0.0, 0.0, perf_counter()
        self.created.clear()

    def end(self, name: str) -> None:
        """End a call of the function `name`. Add its costs if it opened a connection or had several commits.

        The last commit of a call may count for the next call, whose first statement shows the commit.
        """
        self.calls[name] = self.calls.get(name, 0) + 1
        if self.connections or self.commits > 1:
            seconds, connections, opening_s, first_s, commits = self._sums.get(name, (0.0, 0, 0.0, 0.0, 0))
            self._sums[name] = (
                seconds + perf_counter() - self.begun_s,
                connections + self.connections,
                opening_s + self.opening_s,
                first_s + self.first_s,
                commits + self.commits,
            )

    def records(self) -> list[PlainObservation]:
        """Return the number of calls and the sums of costs, for each function of the user with such costs."""
        return [
            (
                CALL_COST,
                name,
                self.calls[name],
                "",
                {
                    "seconds": f"{seconds:.6g}",
                    "connections": f"{connections}",
                    "opening_s": f"{opening_s:.6g}",
                    "first_s": f"{first_s:.6g}",
                    "commits": f"{commits}",
                },
            )
            for name, (seconds, connections, opening_s, first_s, commits) in self._sums.items()
        ]


class Hold(NamedTuple):
    """Time for which a transaction held the write lock."""

    sql: str
    """Statement that took the lock."""
    seconds: float
    outside_s: float
    """Part of the hold outside of SQLite, that is between two statements, in seconds."""
    last: str = ""
    """Statement before the longest time without a running statement; empty if it took the lock."""


def hold_of(steps: Sequence[TimedStep], refused: Container[int] = ()) -> Hold | None:
    """Return the time for which a transaction held the write lock; None if it never had the lock.

    `steps` are the transaction's statements. `refused` has the `id()` of each step that got no lock.
    """
    takers = (
        number for number, step in enumerate(steps) if takes_write_lock(step[0]) and id(step) not in refused
    )
    first = next(takers, None)
    if first is None:
        return None
    *_, begun_s, held_s = steps[first]
    held = steps[first:]
    if begun_s == held_s and len(held) > 1:
        # apsw does not report the end of a BEGIN that it runs for a block. This BEGIN may wait for the lock.
        held = held[1:]
        *_, held_s, _ = held[0]
    *_, last_end_s = steps[-1]
    gaps = [(max(0.0, then[3] - before[4]), before) for before, then in pairwise(held)]
    outside_s = sum(seconds for seconds, _ in gaps)
    _, longest = max(gaps, key=lambda gap: gap[0], default=(0.0, held[0]))
    return Hold(
        steps[first][0], last_end_s - held_s, outside_s, "" if longest is steps[first] else longest[0]
    )


class LongHolds:
    """Counter of long holds of the write lock in this process, by statement and line."""

    def __init__(self) -> None:
        self._began_s = perf_counter()
        self._kinds: dict[tuple[str, str, str, str], list[Hold]] = {}
        self._slow: dict[tuple[str, str, str, str], list[float]] = {}
        """CPU times of slow writes in seconds, by statement, its line, the line of BEGIN, and table scan."""

    def add(self, hold: Hold, at: str, began_at: str = "", work: str = "") -> None:
        """Add a long hold of the write lock by a transaction.

        If the transaction's first statement took the lock, `at` is its line and `began_at` is "". Otherwise
        `at` is "", and `began_at` is the line that began the transaction. `work` is UNFETCHED, or
        CHECKPOINT (then `hold` is the checkpoint itself), or "" for any other reason.
        """
        kind = (short_sql(hold.sql), at, began_at, work)
        if kind in self._kinds or len(self._kinds) < MAX_KINDS:
            self._kinds.setdefault(kind, []).append(hold)

    def add_slow(self, sql: str, at: str, began_at: str, seconds: float, scan: str) -> None:
        """Add a slow write with its CPU time, and a table scan in its query plan, such as "SCAN t", or "".

        `at` is the line of the write, or "" if only `began_at` is known, the line that began the transaction.
        """
        kind = (short_sql(sql), at, began_at, scan)
        if kind in self._slow or len(self._slow) < MAX_KINDS:
            self._slow.setdefault(kind, []).append(seconds)

    def records(self, calls: int) -> list[PlainObservation]:
        """Return an observation for each statement and line with long holds or slow writes.

        An observation has the number of holds and the longest hold. The time that holds spent outside of
        SQLite is given as a share of the time of all holds, and of the time since the recorder's start.
        `calls` is the number of calls of the user's functions in this process.
        """
        elapsed_s = perf_counter() - self._began_s
        records: list[PlainObservation] = []
        for (sql, at, began_at, work), holds in self._kinds.items():
            held_s, outside_s = sum(hold.seconds for hold in holds), sum(hold.outside_s for hold in holds)
            longest = max(holds, key=lambda hold: hold.seconds)
            traits = {
                "at": at,
                "began_at": began_at,
                "seconds": f"{longest.seconds:.3g}",
                "last": short_sql(longest.last),
                "outside": f"{outside_s / held_s:.3g}",
                "share": f"{outside_s / elapsed_s:.3g}",
                "calls": str(calls),
                **({"work": work} if work else {}),
            }
            records.append((LONG_HOLD, sql, len(holds), "", traits))
        for (sql, at, began_at, scan), seconds in self._slow.items():
            traits = {
                "at": at,
                "began_at": began_at,
                "seconds": f"{max(seconds):.3g}",
                "outside": "0",
                "share": f"{sum(seconds) / elapsed_s:.3g}",
                "work": scan or "much work",
            }
            records.append((LONG_HOLD, sql, len(seconds), "", traits))
        return records
