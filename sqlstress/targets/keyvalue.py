"""A key-value view of what a target stores: a worker's half, and the parent's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from sqlstress.system.pulse import Pulse

Operation = Callable[[Any], Any]


class Store(Protocol):
    """A worker's half: functions by bucket, each one transaction. All lists are indexed by bucket."""

    gets: list[Operation]
    """(key,) → value, or None."""
    pairs: list[Operation]
    """(key, key) → [(key, value), …] of both, read in one snapshot."""
    puts: list[Operation]
    """(key, value): one replace in autocommit."""
    batches: list[Operation]
    """[(key, value), …]: several replaces in one transaction."""
    updates: list[Operation]
    """(counter,): read the counter, write it plus one."""

    def was_busy(self, error: Exception) -> bool:
        """Return whether an operation was given up because a lock stayed taken, and count it if so."""

    def busy_counts(self) -> tuple[int, int]:
        """Return how many BUSY and BUSY_SNAPSHOT answers were met by waiting operations."""

    def effective(self) -> dict[str, str]:
        """Return the settings as the store answers them; where buckets differ, all answers."""

    def close(self) -> None:
        """Close every connection."""


class NativeStore(Protocol):
    """A worker's half whose operations are done in C, by a loop that runs there as a whole."""

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Carry out a plan of `kv.native`, and return what was done. Raises EnvironmentFailure."""

    def effective(self) -> dict[str, str]:
        """Return the settings as the store answers them; where buckets differ, all answers."""

    def close(self) -> None:
        """Close every connection."""


class Table(Protocol):
    """The parent's half: it makes the buckets, and reads them when no worker is connected any more."""

    def fill(self, buckets: Iterable[Iterable[tuple[Any, Any]]], pulse: Pulse) -> None:
        """Make every bucket anew with these rows and its counters, as the workers are to find it.

        Raises UsageError or EnvironmentFailure when a setting was not taken. What it keeps open for the
        workers is closed by `release`.
        """

    def create(self, pulse: Pulse) -> None:
        """Make every bucket anew and empty, with the settings of the case, and nothing more."""

    def release(self) -> None:
        """Close what was kept open: the workers are connected, or won't be."""

    def name(self, bucket: int) -> str:
        """Return what a bucket is called."""

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        """Yield every key of a bucket, with its value."""

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        """Return the counters of a bucket by their numbers."""
