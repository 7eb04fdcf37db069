"""What the engine asks of a workload: a worker's half and the parent's half."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from sqlstress.stores import Operation

if TYPE_CHECKING:  # a worker process need not know what a report is
    from sqlstress.report import Verdict

KINDS = ("get", "replace", "update", "pair")
GET, REPLACE, UPDATE, PAIR = range(len(KINDS))
FAILED = 255


@dataclass(slots=True)
class Chunk:
    """A stretch of operations, prepared outside the times that are measured."""

    kinds: bytearray
    """Kind of each operation, as an index into KINDS; FAILED once it was given up."""
    calls: Iterable[Operation]
    params: Iterable[Any]
    rows: Any = field(default=None)
    """What each operation writes, as the workload records it."""


class Source(Protocol):
    """A worker's half: what it does, chunk by chunk."""

    only_reads: bool
    """Whether no operation writes, so that nothing has to be acknowledged."""
    stamps: Any
    """Where the loop puts the begin of a chunk and the end of each operation: shared 64-bit words."""
    row_weights: Sequence[int]
    """Rows read or written by one operation of each kind."""
    largest_chunk: int

    def next_chunk(self, size: int) -> Chunk | None:
        """Prepare up to `size` operations; None when everything has been done."""

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        """Record that an operation was given up after its time-out; re-raise any other error."""

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: list[int]) -> None:
        """Acknowledge what was done: `stamps` holds done + 1 times."""

    def explain(self, error: Exception) -> str:
        """Return what went wrong, with the store's own name for it."""

    def busy_counts(self) -> tuple[int, int]:
        """Return the BUSY and BUSY_SNAPSHOT answers so far."""

    def findings(self) -> Findings:
        """Return what the worker found wrong in what it read, and the settings it ran with."""

    def close(self) -> None:
        """Close the store."""


@dataclass(slots=True)
class Findings:
    """What one worker saw of the data and of its settings."""

    effective: dict[str, str] = field(default_factory=dict)
    reads_checked: int = 0
    bad_reads: int = 0
    bad_read_examples: list[str] = field(default_factory=list)
    pairs_checked: int = 0
    torn: int = 0
    torn_examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """What the parent knows of one worker when the trial is over."""

    worker: int
    died: bool
    findings: Findings | None


class Work(Protocol):
    """The parent's half of one trial."""

    shared: tuple[Any, ...]
    """Shared arrays, handed to the workers unchanged."""

    def prepare(self, pulse: Callable[[], None]) -> None:
        """Create and fill what the workers need; calls `pulse` often, which may raise Interrupted."""

    def connected(self) -> None:
        """All workers are connected."""

    def verify(self, outcomes: Sequence[Outcome], pulse: Callable[[], None]) -> Verdict:
        """Say whether the data is what the workers were told it is."""

    def discard(self) -> None:
        """Remove the files; called however the trial ended."""
