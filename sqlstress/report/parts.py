"""What a case says beside what all cases say: of its experiment, and of what checkpoints its files."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

PHASES = ("insert", "allocate", "query")
METHODS = ("1b1", "BLK", "BLK/n", "ROW", "VALUES", "JSON", "SPC")

SCHEMAS = ("id-rowid", "id-norowid", "pair-norowid", "no-key", "pair-rowid")
ID_TYPES = ("int", "uuid4", "ulid", "ulid-monotonic", "uuid7")
ID_MAKERS = ("python", "sqlite")

CHECKPOINT_MODES = ("none", "passive", "restart", "truncate")


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
class Checkpointing:
    """What happens to the WAL beside the load, by processes of their own."""

    mode: str = "none"
    """PRAGMA wal_checkpoint(mode) of a process of its own: passive, restart or truncate; none: without."""
    interval_s: float = 0.02
    """Pause between two checkpoints, and between two looks at the WAL, in seconds."""
    pinned_reader: bool = False
    """Whether one more process holds a snapshot open over the whole window."""
