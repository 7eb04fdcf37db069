"""Whether a measurement stood still: a machine that slept, a virtual one that was frozen, a stopped program.

The clock that latencies are taken with goes on meanwhile, or it does not, as the system has it; either
way the figures are not those of a machine that was awake. Seen from two sides: the parent looks about
ten times a second, and a look that comes late says that nothing ran; and of a system's clocks one counts
sleep and another does not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

NOTICED_S = 1.0
"""A machine that is only busy lets a process that sleeps run within a fraction of this."""


class Standstill:
    """Looks at the clocks, from when it is made."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        asleep: Callable[[], float] | None = None,
    ) -> None:
        """`asleep` returns the seconds that the machine has slept, from any beginning."""
        self._clock, self._asleep = clock, asleep or seconds_asleep
        self._slept_before = self._asleep()
        self._last, self._longest = clock(), 0.0

    def look(self) -> None:
        """Look at the clock: to be called several times a second."""
        now = self._clock()
        self._last, self._longest = now, max(self._longest, now - self._last)

    def seconds(self) -> float:
        """Return how long nothing ran, at most; 0 for what a busy machine does, too."""
        longest = max(self._longest, self._asleep() - self._slept_before)
        return longest if longest > NOTICED_S else 0.0


def seconds_asleep() -> float:
    """Return how far the clock that counts sleep is ahead of the one that does not.

    On Windows 0.0: what we look at there counts sleep, so that a look comes late.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    if sys.platform == "darwin":
        # Both of them raw: CLOCK_MONOTONIC is slewed there, by a second in some hours at worst.
        return time.clock_gettime(time.CLOCK_MONOTONIC_RAW) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    return 0.0
