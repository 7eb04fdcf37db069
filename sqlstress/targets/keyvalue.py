"""What a worker sees of a store: functions by bucket, each one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Operation = Callable[[Any], Any]

COUNTERS = 16
"""Counters in every file, for read-modify-write transactions."""


class Store(Protocol):
    """A key-value view over one file or over hash-partitioned files. All lists are indexed by bucket."""

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
        """Return the settings as the store answers them; differing files are both named."""

    def close(self) -> None:
        """Close every connection."""
