"""Options and result of a watch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlstress.options.option import ONE, option
from sqlstress.options.parsing import duration, shown, switch, whole
from sqlstress.report.results import Holds

WATCHING = "Watch"


@dataclass(frozen=True, slots=True)
class Watching:
    """How long, and how often, a database is looked at."""

    duration_s: float | None = option(
        duration(0.1),
        None,
        WATCHING,
        "How long to watch. Default: 10s, or no limit with --until-held.",
        name="duration",
        metavar="TIME",
        meaning="How long to watch, in seconds; null: until somebody holds the write lock for too long.",
    )
    rate: int = option(
        whole(1, 1000),
        100,
        WATCHING,
        "Samples per second. A lock held for less than the time between two can be missed.",
    )
    until_held_s: float | None = option(
        duration(0.001),
        None,
        WATCHING,
        "Exit 1 as soon as a process has held the write lock for longer than TIME.",
        name="until-held",
        metavar="TIME",
        meaning="The watch ends when a process has held the write lock for more seconds; null: it does not.",
    )


def file_name(value: Any) -> str:
    """Read the name of a file. Raises ValueError."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError(f"{shown(value)} is not a file name: write app.db")
    return str(value)


@dataclass(frozen=True, slots=True)
class Shown:
    """What is watched, and how it is shown meanwhile."""

    file: str | None = option(
        file_name, None, WATCHING, "Database that other programs use now.", metavar="FILE", argument=ONE
    )
    plain: bool | None = option(
        switch, None, WATCHING, "Print one line per second even on a terminal.", flag=True
    )


WRITE, EXCLUSIVE, PENDING, READ, CHECKPOINT, RECOVERY = (
    "write",
    "exclusive",
    "pending",
    "read",
    "checkpoint",
    "recovery",
)
"""The locks: of a rollback journal, write is RESERVED and read is SHARED."""
DELETED_WAL, OTHER_WAL = "deleted", "other"
"""WAL of a process that is not the WAL of the watched path."""
DELETED, REPLACED, JOURNAL = "deleted", "replaced", "journal"
"""What can happen to a file that is watched."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was seen with a lock."""

    pid: int
    """Its number; 0: of another container, and -1: of no process of this system."""
    command: tuple[str, ...] = ()
    """Its command line; empty: it had ended before it could be asked, or may not be asked."""
    user: str = ""
    """Whose process it is; empty where it is not known."""
    started: str = ""
    """When it began: ISO 8601, UTC; empty where it is not known."""
    gone: bool = False
    """Whether it had ended before the watch did."""
    wal: str = ""
    """Its WAL if that is not the WAL of the watched path: "deleted", or "other" for the WAL next to another
    name of the file; else empty."""
    name: str = ""
    """Path under which it opened the database, if `wal` is not empty."""
    writes: bool = False
    """Whether the size or time of that WAL changed during the watch."""
    locks: dict[str, Holds] = field(default_factory=dict)
    """By lock. Of several that share a read lock one is seen; only `samples` is known of it."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A transaction that read an old state of a WAL: no checkpoint copies what came later."""

    processes: tuple[int, ...]
    """Who was seen with its read lock, by place in the processes; the last one may be the one that pinned."""
    frame: int
    """The last frame that it could see."""
    since_s: float
    """When it was first seen so, in seconds of the watch; 0: it may have begun before."""
    seconds: float
    """How long it was seen."""
    grew_frames: int
    """Frames that were committed behind that one meanwhile, or before."""
    lasts: bool = False
    """Whether it was there at the last sample."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the file."""

    at_s: float
    """When it was seen, in seconds of the watch."""
    what: str
    """deleted, replaced, or journal: it has another journal now."""
    journal: str = ""
    """Which journal it has then: wal or rollback."""


@dataclass(frozen=True, slots=True)
class Course:
    """What was seen as time went on, in steps of the same length."""

    step_s: float = 0.1
    """Length of a step, in seconds."""
    samples: tuple[int, ...] = ()
    """Samples of each step."""
    held: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Samples of each step that saw the write lock held, by place of the process; "others" for the rest."""
    frames: tuple[int, ...] = ()
    """Frames in the WAL, the most of each step."""
    checkpointed: tuple[int, ...] = ()
    """How many of them were in the database file already, at the end of each step."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A database that others used, looked at from outside."""

    database: str
    """Its file, as it was given."""
    asked: Watching
    """How it was to be watched."""
    seconds: float = 0.0
    """How long it was watched."""
    samples: int = 0
    """How often it was looked at."""
    open_samples: int = 0
    """In how many of these it could have locks: a rollback journal, or a WAL with its wal-index."""
    longest_gap_s: float = 0.0
    """The longest time between two samples."""
    journal: str = ""
    """The journal at the end: wal or rollback; empty: the file was never there, or empty."""
    commits: int | None = None
    """Transactions that were committed meanwhile, whoever did; None where they could not be counted."""
    write: Holds = field(default_factory=Holds)
    """How the write lock was held by anybody: the longest time in which it was never seen free."""
    processes: tuple[Process, ...] = ()
    """Who held locks: first the one that was seen most often with the write lock."""
    others: int = 0
    """Processes beyond these, which were not kept."""
    pins: tuple[Pin, ...] = ()
    """What kept the WAL from being reset, the longest first."""
    page_bytes: int = 0
    """Size of a page of the WAL, in bytes; 0: there was no WAL."""
    frames: int = 0
    """The most frames that the WAL was seen to hold."""
    frames_now: int = 0
    """Frames that the WAL held at the last sample that could be read."""
    checkpointed: int = 0
    """Number of these frames, of the last sample, that were in the database file."""
    wal_bytes: int = 0
    """The greatest size of the WAL's file."""
    wal_bytes_now: int = 0
    """Size of the WAL's file at the end, in bytes."""
    openers: int | None = None
    """The largest number of processes that had the database open at once; null if the system does not list
    open files."""
    hidden: int = 0
    """Number of processes whose open files could not be read."""
    links: int = 0
    """Number of names (hard links) of the file; 0 if unknown."""
    is_mount: bool = False
    """Whether the file itself is a mount point, as a container's bind mount of one file."""
    hot_journal: bool = False
    """Whether a writer died and left a rollback journal: the next program to open the file rolls it back."""
    held_too_long: int | None = None
    """Who held the write lock for longer than asked, by place in the processes; None: nobody."""
    events: tuple[Event, ...] = ()
    """What happened to the file, the first of it."""
    course: Course = Course()
    """What was seen as time went on."""
    error: str | None = None
    """Why it ended early; None when it did not, or was interrupted."""
