"""Restarts of backups that copy a database in several steps.

If another connection writes the source between two steps, the next step begins with the first page again.

Source: https://www.sqlite.org/c3ref/backup_finish.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlstress.recording import BACKUP, PlainObservation
from sqlstress.recording.failures import MAX_KINDS


class BackupSteps:
    """Counter of the restarts of one backup."""

    def __init__(self, progress: Callable[[int, int, int], Any] | None) -> None:
        """`progress` is the callback that the user's code has given to `Connection.backup`, or None."""
        self._progress = progress
        self._copied = 0
        self.restarts = 0

    def note(self, status: int, remaining: int, total: int) -> None:
        """Handle the end of a step, and call the user's callback with the arguments."""
        copied = total - remaining
        if not status:  # With another status than SQLITE_OK, the step copied nothing, or was the last.
            self.restarts += copied <= self._copied
            self._copied = copied
        if self._progress:
            self._progress(status, remaining, total)


class Backups:
    """Recorder of this process's backups that began again, by line of the user's code."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[int, int, float]] = {}
        """Number of backups, and maximum number of restarts and of seconds of a backup."""

    def add(self, at: str, restarts: int, seconds: float) -> None:
        """Record a backup at the line `at` that began again `restarts` times and took `seconds`."""
        count, most, longest_s = self._lines.get(at, (0, 0, 0.0))
        if count or len(self._lines) < MAX_KINDS:
            self._lines[at] = count + 1, max(most, restarts), max(longest_s, seconds)

    def records(self) -> Iterator[PlainObservation]:
        """Yield an observation for each line of code."""
        for at, (count, restarts, seconds) in self._lines.items():
            yield BACKUP, at, count, "", {"restarts": str(restarts), "seconds": f"{seconds:.3g}"}
