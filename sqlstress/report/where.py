"""Where the time of a trial's operations went, and who held the lock while the slowest of them waited."""

from __future__ import annotations

from dataclasses import dataclass, field

HELD, FREE, CHECKPOINT, SYNC, WRITE, PROCESSOR, SQLITE, BINDING, HARNESS = PARTS = (
    *("held", "free", "checkpoint", "sync", "write", "processor", "sqlite", "binding", "harness"),
)
"""Parts of the time: waiting for a lock that another process held; waiting for one that was free meanwhile,
that is, asleep; in checkpoints of one's own; in syncs and in writes outside of them; waiting for a processor;
SQLite's own work, reads included; the driver's binding; and what draws keys, counts and proves.
"""
COMMIT, READ, OWN = "commit", "read", "own"
"""What a lock was held for beside `sync` and `checkpoint`; what of an operation was one's own work."""


@dataclass(frozen=True, slots=True)
class Held:
    """How long the slowest operations waited for one process, and for what it did."""

    process: int
    """Who held the lock: a worker's number, or above the concurrency that of a process beside them."""
    what: str
    """What it did: commit, sync, checkpoint or read."""
    ns: int
    """How long they waited for that, all together."""


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest 1% of the operations that took a lock to write, or waited for one to read."""

    operations: int
    """How many they are."""
    of: int
    """Of how many."""
    fastest_ns: int
    """How long the fastest of them took."""
    total_ns: int
    """How long they took together."""
    parts: dict[str, int] = field(default_factory=dict)
    """What of that went into what, in ns: held, free, checkpoint, sync, and own for the rest."""
    behind: dict[str, int] = field(default_factory=dict)
    """What others did while they held what was waited for, in ns: commit, sync, checkpoint, read."""
    held_by: tuple[Held, ...] = ()
    """Whose locks they waited for, longest first; a few of them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The slowest of them, and what the processes did meanwhile."""

    process: int
    """Whose operation it was: a worker's number."""
    at_ns: int
    """When it began, after the window had opened; less than 0: before."""
    length_ns: int
    """How long it took."""
    spans: tuple[tuple[int, str, int, int], ...] = ()
    """Process, what it did (wait, commit, sync, checkpoint or read), from when and until when, in ns after
    its begin. Stretches that lie close beside each other are one.
    """


@dataclass(frozen=True, slots=True)
class Where:
    """Where the time of all workers together went, within the window."""

    time_ns: int
    """The window's length times the workers that told."""
    parts: dict[str, int] = field(default_factory=dict)
    """What of it went into what, in ns: held, free, checkpoint, sync, write, processor, sqlite, binding and
    harness.

    The binding is what is left. Without processor the system does not say; it is in the others then.
    """
    told: float = 1.0
    """Share of the window, at its end, of which is known who held the locks: held and free are told by it."""
    pending_ns: int = 0
    """The longest wait for a lock that had not ended when the window closed; 0: none was."""
    slowest: Slowest | None = None
    """The slowest operations; None where too few took or awaited a lock."""
    moment: Moment | None = None
    """The slowest of them; None where there is none."""
