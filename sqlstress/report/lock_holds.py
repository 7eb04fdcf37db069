"""How a lock was held, as samples from outside saw it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holds:
    """How a lock was held."""

    samples: int = 0
    """In how many samples it was seen."""
    times: int = 0
    """How many holds were seen; several short ones between two samples are none, or one."""
    longest_s: float = 0.0
    """The longest hold, from the first sample to the last one that saw it."""
    most_s: float = 0.0
    """The same, from the sample before it to the sample behind it: it was not longer."""
    longest_at_s: float = 0.0
    """When that began, in seconds of the watch; 0: it may have begun before."""
    now_s: float = 0.0
    """How long it was held at the last sample; 0: it was not."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A program whose processes were seen with the write lock."""

    program: str
    """Its command line without folders; words that differ between its processes have N for numbers."""
    processes: int
    """How many of its processes were seen with the lock."""
    held: Holds
    """How they held it, one after the other."""


@dataclass(frozen=True, slots=True)
class WriteLock:
    """Who held the write lock of a trial's database within the window: nobody else could write meanwhile."""

    rate: int
    """Samples per second that were wanted."""
    samples: int = 0
    """How often it was looked at."""
    longest_gap_s: float = 0.0
    """The longest time between two samples."""
    held: Holds = Holds()
    """How it was held by anybody: the longest time in which it was never seen free."""
    holders: tuple[Holder, ...] = ()
    """Who held it, first the one that was seen most often."""
    error: str = ""
    """Why the samples ended early; empty when they did not."""
