"""This process and all that it has started: what they took of the processors.

A process that has ended and was waited for counts with who waited for it, on systems that keep such an
account. Neither macOS nor Windows does: there it counts as it was seen last.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import psutil

KEEPS_ACCOUNT = sys.platform not in ("darwin", "win32")


class Family:
    """A process, and those that it, and they, have started before the first look."""

    def __init__(self, pid: int | None = None) -> None:
        """Without an id it is this process. Raises psutil.NoSuchProcess."""
        self._head = psutil.Process(pid)
        self._others: list[psutil.Process] | None = None
        self._seen: dict[psutil.Process, float] = {}
        """What the others took, as they were seen last, where no account of them is kept."""

    def spent_s(self) -> float | None:
        """Return the processors' time that they took since they began, in seconds; None if not to be told."""
        try:
            # Who ends between two readings is counted twice rather than never.
            return sum(map(self._spent_by, self._descendants())) + _spent(self._head)
        except (psutil.Error, OSError):
            return None

    def _descendants(self) -> Iterable[psutil.Process]:
        if self._others is None:
            self._others = self._found()
        return self._others

    def _found(self) -> list[psutil.Process]:
        """Return all that was started, each before who has started it."""
        return self._head.children(recursive=True)[::-1]

    def _spent_by(self, process: psutil.Process) -> float:
        """Return what one has taken; 0 of one that has ended, where it counts with who waited for it."""
        try:
            spent = _spent(process)
        except psutil.NoSuchProcess:
            return self._seen.get(process, 0.0)
        if not KEEPS_ACCOUNT:
            self._seen[process] = spent
        return spent


class ChangingFamily(Family):
    """A process that starts others all the time, as those do, which end soon."""

    def _descendants(self) -> Iterable[psutil.Process]:
        return self._found()


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system
