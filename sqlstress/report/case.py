"""Case: one measurement, fully specified. It travels to the workers and into the report unchanged."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.report.parts import Checkpointing, Cycling, Method, Picks

JOURNAL_MODES = ("wal", "delete", "truncate", "persist", "memory", "off")
SYNCHRONOUS = ("off", "normal", "full", "extra")
DISTRIBUTIONS = ("uniform", "zipfian", "sequential")
KEY_TYPES = ("int", "text", "blob")
BEGINS = ("deferred", "immediate")
BUSY_POLICIES = ("default", "fair")
VERIFY_LEVELS = ("none", "quick", "full")

UNKNOWN_DRIVER = "unknown"
"""Driver of figures that somebody else published: through what, and how it waited for locks, was not told."""

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
    """Name in the registry of workloads: kv, classic (as published), methods, keys, cycles or crash."""
    driver: str = "sqlite3"
    """Name in the registry of drivers."""
    concurrency: int = 1
    """Number of worker processes; 0 where it is not known, of figures that somebody else published."""
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
    """What the workers of a key-value case do."""
    checkpointing: Checkpointing | None = None
    """What processes beside the workers do to the WAL; None: there are none."""
    method: Method | None = None
    """What the workers of a case of "methods" do."""
    picks: Picks | None = None
    """What the workers of a case of "keys" do."""
    cycling: Cycling | None = None
    """What the workers of a case of "cycles" do."""

    @property
    def unit(self) -> str:
        """What one transaction of the report is: transaction, pair (set and get) or statement (cycles)."""
        return {"classic": "pair", "cycles": "statement"}.get(self.workload, "transaction")

    @property
    def experiment(self) -> str:
        """Which experiment it belongs to, and so how it is shown: kv, methods, keys or cycles."""
        parts = (("methods", self.method), ("keys", self.picks), ("cycles", self.cycling))
        return next((name for name, part in parts if part), "kv")

    @property
    def has_window(self) -> bool:
        """Whether what completes within a window is counted; else a fixed amount of work is done."""
        return self.workload == "kv" and self.ops is None

    @property
    def label(self) -> str:
        """The case in a few words, to tell it from the others of its plan."""
        parts = [self.work]
        if self.concurrency:
            parts.append("1 process" if self.concurrency == 1 else f"{self.concurrency} processes")
        return ", ".join(parts)

    @property
    def work(self) -> str:
        """What each process does, to tell it from the others of its plan."""
        if self.method:
            return f"{self.method.phase} {self.method.scale:,} by {self.tricks}, {self.driver}"
        if self.picks:
            made = " made by SQLite" if self.picks.made_by == "sqlite" else ""
            return f"{self.picks.schema}, {self.picks.id_type}{made}"
        if self.cycling:
            return self.setting
        return "1 file" if self.buckets == 1 else f"{self.buckets} files"

    @property
    def tricks(self) -> str:
        """Which method a case of "methods" tries, as a column of its tables is headed: "1b1 + WAL + TSC"."""
        parts = [self.method.name, *["TSC"] * self.method.transaction] if self.method else []
        parts[1:1] = ["WAL"] * (self.settings.journal_mode == "wal")
        return " + ".join(parts)

    @property
    def setting(self) -> str:
        """Which setting a case of "cycles" tries: journal, transaction, frames of a checkpoint (or off)."""
        transaction = self.cycling.transaction if self.cycling else "none"
        frames = self.settings.wal_autocheckpoint
        parts = [self.settings.journal_mode]
        parts += [transaction] * (transaction != "none")
        parts += [str(frames) if frames else "off"] * (frames is not None)
        return "-".join(parts)
