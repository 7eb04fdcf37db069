"""Case: one measurement, fully specified. It travels to the workers and into the report unchanged."""

from __future__ import annotations

from dataclasses import dataclass

JOURNAL_MODES = ("wal", "delete", "truncate", "persist", "memory", "off")
SYNCHRONOUS = ("off", "normal", "full", "extra")
DISTRIBUTIONS = ("uniform", "zipfian", "sequential")
KEY_TYPES = ("int", "text", "blob")
BEGINS = ("deferred", "immediate")
BUSY_POLICIES = ("default", "fair")
VERIFY_LEVELS = ("none", "quick", "full")

MAX_CONCURRENCY = 1024
MAX_BUCKETS = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """How every connection is opened. None means: left to the SQLite library, and read back."""

    journal_mode: str = "wal"
    """PRAGMA journal_mode, lower case."""
    synchronous: str | None = "full"
    """PRAGMA synchronous: off, normal, full or extra; None leaves it to the library."""
    fullfsync: bool | None = None
    """PRAGMA fullfsync; has an effect on macOS only."""
    wal_autocheckpoint: int | None = None
    """PRAGMA wal_autocheckpoint, in frames; 0 turns it off."""
    page_size: int | None = None
    """PRAGMA page_size, in bytes."""
    cache_size: int | None = None
    """PRAGMA cache_size: pages, or KiB when negative."""
    mmap_size: int | None = None
    """PRAGMA mmap_size, in bytes."""
    pragmas: tuple[tuple[str, str], ...] = ()
    """Further PRAGMAs, as (name, value)."""
    busy_timeout_ms: int = 60_000
    """How long an operation waits for a lock before it gives up, in milliseconds."""
    busy: str = "default"
    """How it waits: SQLite's own busy handler ("default") or ours ("fair")."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the workers of a key-value case do."""

    read_ratio: float = 0.5
    """Share of the transactions that are gets, 0 to 1."""
    update_ratio: float = 0.0
    """Share of the transactions that read a counter and write it plus one, 0 to 1."""
    key_space: int = 100_000
    """Number of distinct keys; all of them are preloaded."""
    distribution: str = "uniform"
    """How keys are drawn: uniform, zipfian or sequential."""
    key_type: str = "int"
    """Type of the key column: int, text or blob."""
    value_size: int = 8
    """Bytes in a value, 8 or more."""
    batch: int = 1
    """Replaces per transaction."""
    begin: str = "immediate"
    """How a transaction of several statements begins: deferred or immediate."""


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement, fully specified."""

    workload: str = "kv"
    """Name in the registry of workloads: "kv", or "classic" for the published script."""
    driver: str = "sqlite3"
    """Name in the registry of drivers."""
    concurrency: int = 1
    """Number of worker processes."""
    buckets: int = 1
    """Number of database files over which the keys are hash-partitioned."""
    duration_s: float = 2.0
    """Length of the measured window, in seconds."""
    warmup_s: float = 0.5
    """Load before the window opens, in seconds; not counted."""
    ops: int | None = None
    """A fixed number of transactions for each worker, instead of a window."""
    repeat: int = 1
    """Number of trials."""
    seed: int = 0
    """Seed of the workers' random streams."""
    verify: str = "quick"
    """How far the data is verified after each trial: none, quick or full."""
    settings: Settings = Settings()
    """How every connection is opened."""
    load: Load = Load()
    """What the workers do."""

    @property
    def unit(self) -> str:
        """What one transaction of the report is: "transaction", or "pair" (a set and a get)."""
        return "pair" if self.workload == "classic" else "transaction"
