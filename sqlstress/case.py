"""Case: one measurement, fully specified. It travels to the workers and into the report unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

JOURNAL_MODES = ("wal", "delete", "truncate", "persist", "memory", "off")
SYNCHRONOUS = ("off", "normal", "full", "extra")
DISTRIBUTIONS = ("uniform", "zipfian", "sequential")
KEY_TYPES = ("int", "text", "blob")
BEGINS = ("deferred", "immediate")
BUSY_POLICIES = ("default", "fair")
VERIFY_LEVELS = ("none", "quick", "full")

PHASES = ("insert", "allocate", "query")
METHODS = ("1b1", "BLK", "BLK/n", "ROW", "VALUES", "JSON", "SPC")

SCHEMAS = ("id-rowid", "id-norowid", "pair-norowid", "no-key", "pair-rowid")
ID_TYPES = ("int", "uuid4", "ulid", "ulid-monotonic", "uuid7")
ID_MAKERS = ("python", "sqlite")

CHECKPOINT_MODES = ("none", "passive", "restart", "truncate")

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
class Checkpointing:
    """What happens to the WAL beside the load, by processes of their own."""

    mode: str = "none"
    """PRAGMA wal_checkpoint(mode) of a process of its own: passive, restart or truncate; none: without."""
    interval_s: float = 0.02
    """Pause between two checkpoints, and between two looks at the WAL, in seconds."""
    pinned_reader: bool = False
    """Whether one more process holds a snapshot open over the whole window."""


@dataclass(frozen=True, slots=True)
class Method:
    """One cell of the experiment with methods: how so many rows are written or read."""

    phase: str
    """What is done: insert (samples), allocate (a result for each pair of samples) or query (pairs)."""
    name: str
    """How: 1b1 (one by one), BLK, JSON, SPC, or one of their variants; one of METHODS."""
    transaction: bool
    """Whether all of it is one transaction (TSC)."""
    scale: int
    """Samples to insert, samples whose pairs are allocated, or pairs to query."""
    timeout_s: float
    """After which time of work the cell is given up, in seconds."""
    samples: int = 1000
    """Samples of which the table that is queried holds every pair; 0 where that is not known."""
    chunk: int = 1000
    """Rows of each statement of BLK/n."""
    as_published: bool = False
    """Whether a summary that mixes the phases, as the published one does, is shown too."""

    @property
    def rows(self) -> int:
        """Rows that are written or read."""
        return self.scale * (self.scale - 1) // 2 if self.phase == "allocate" else self.scale

    @property
    def sets(self) -> tuple[int, int]:
        """Sizes of the two sets of ids between which the queried pairs lie: the nearest, the lower first."""
        lower = next((size for size in range(isqrt(self.scale), 0, -1) if self.scale % size == 0), 1)
        return lower, self.scale // lower


@dataclass(frozen=True, slots=True)
class Picks:
    """The experiment with primary keys: users pick items, a transaction for each user."""

    schema: str
    """Name of the schema of the table of picks, one of SCHEMAS."""
    id_type: str
    """What identifies users, items and, where they have an id of their own, picks: one of ID_TYPES."""
    made_by: str = "python"
    """Where the picks' own ids are made: python, or sqlite (a registered function)."""
    users: int = 1000
    """Number of users, each one transaction."""
    picks: int = 100
    """Mean number of items that a user picks, give or take a tenth."""
    items: int = 10_000
    """Number of items to pick from."""
    begin: str = "deferred"
    """How a transaction begins: deferred or immediate."""

    @property
    def own_id(self) -> bool:
        """Whether a pick has an id of its own; else it is the user and the item that identify it."""
        return self.schema.startswith("id-")

    @property
    def most_picks(self) -> int:
        """The largest number of items that one user can pick."""
        return self.picks + self.picks // 10


@dataclass(frozen=True, slots=True)
class Cycling:
    """The experiment with cycles: insert rows, delete all of them, insert rows again."""

    cycles: int = 100
    """Number of cycles."""
    rows: int = 5
    """Rows of each of the two insertions of a cycle."""
    transaction: str = "none"
    """What one transaction holds: none of ours (each statement is its own), a cycle, or the whole run."""
    timeout_s: float | None = None
    """After which time of work a run is given up, in seconds; None: never."""


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
