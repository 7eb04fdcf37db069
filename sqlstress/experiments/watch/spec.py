"""Options and result of a watch, which samples the locks of a database that other programs use.

A hold is a time during which every sample saw a process with a lock. During a hold of the write lock, the
processor and disk use of the process is read repeatedly: each time is called a reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlstress.options.option import ONE, option
from sqlstress.options.parsing import abbreviate, byte_size, duration, switch, whole_number
from sqlstress.report.results import Holds

WATCHING = "Watch"


@dataclass(frozen=True, slots=True)
class Watching:
    """Duration and sampling rate of a watch."""

    duration_s: float | None = option(
        duration(0.1),
        None,
        WATCHING,
        "How long to watch. Default: 10s, or no limit with --until-held or --until-wal.",
        name="duration",
        metavar="TIME",
        meaning="Duration of the watch, in seconds; null means no limit.",
    )
    rate: int = option(
        whole_number(1, 1000),
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
        meaning="Longest hold of the write lock before the watch ends, in seconds; null means no limit.",
    )
    until_wal_bytes: int | None = option(
        byte_size(1, 10**15),
        None,
        WATCHING,
        "Exit 1 as soon as the WAL file has SIZE, such as 100MB, and name the cause.",
        name="until-wal",
        metavar="SIZE",
        meaning="Size of the WAL file at which the watch ends, in bytes; null means no limit.",
    )


def file_name(value: Any) -> str:
    """Return the name of a file as text. Raises ValueError if `value` cannot be a file name."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError(f"{abbreviate(value)} is not a file name: write app.db")
    return str(value)


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """Watched file, and form of the display during the watch."""

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
"""Names of SQLite's locks. In rollback mode, write is the RESERVED lock and read is SHARED."""
DELETED_WAL, OTHER_WAL = "deleted", "other"
"""Kinds of WALs besides the watched one: deleted, or of another name (hard link) of the database file."""
DELETED, REPLACED, JOURNAL = "deleted", "replaced", "journal"
"""Kinds of events: the database file was deleted or replaced, or its kind of journal changed."""


@dataclass(frozen=True, slots=True)
class MappedSqlite:
    """SQLite library that a process has mapped into its memory."""

    version: str
    """Version, such as "3.45.1"; empty if unknown."""
    file: str
    """Path of the library, or of the program with SQLite inside."""
    wal_reset_bug: bool = False
    """Whether this version has the WAL-reset bug, which can lose commits."""


@dataclass(frozen=True, slots=True)
class HoldUsage:
    """Processor and disk use of a process, from repeated readings in its longest hold of the write lock."""

    seconds: float
    """Time from the first to the last reading during the hold, in seconds; a little less than the hold."""
    cpu_s: float
    """Processor time that the process used, in seconds."""
    written_bytes: int | None = None
    """Data that the process wrote to disks, in bytes; null if unknown."""
    disk_share: float = 0.0
    """Share of the readings in which the process waited for a disk, from 0 to 1."""
    running_share: float = 0.0
    """Share of the readings in which the process ran, or waited for a processor, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Process:
    """Process that held a lock of the database, or used a different WAL."""

    pid: int
    """Process ID; 0 means a process in another container, -1 a process that is not visible on this system."""
    command: tuple[str, ...] = ()
    """Command line; empty if unknown."""
    user: str = ""
    """User of the process; empty if unknown."""
    started: str = ""
    """Start time: ISO 8601, UTC; empty if unknown."""
    gone: bool = False
    """Whether the process ended before the end of the watch."""
    wal: str = ""
    """Kind of a WAL other than the WAL of the watched path; empty for the watched WAL.

    "deleted": the WAL file is gone. "other": the process opened the database by another name (hard link) of
    the file, so it uses another WAL.
    """
    name: str = ""
    """Path of the database, as the process opened it, if `wal` is not empty; else empty."""
    writes: bool = False
    """Whether the process's deleted or other WAL changed during the watch."""
    sqlite: tuple[MappedSqlite, ...] = ()
    """SQLite libraries in the process at the end of the watch; empty if unknown."""
    usage: HoldUsage | None = None
    """Processor and disk use during the longest hold of the write lock; null if unknown."""
    locks: dict[str, Holds] = field(default_factory=dict)
    """Holds by name of the lock. For read locks only `samples` is known; the other fields are 0.

    If several processes share a read lock, a sample sees only one of them. So holds cannot be timed.
    """


@dataclass(frozen=True, slots=True)
class Pin:
    """Read transaction with an old snapshot of the WAL.

    A checkpoint cannot copy frames that are newer than the snapshot. So writers cannot start the WAL again
    from its first frame, and it grows.
    """

    processes: tuple[int, ...]
    """Processes with the transaction's read lock, as indices into `processes` of the watch.

    Several processes can share the lock, so each of them may be the reader.
    """
    frame: int
    """Number of the last frame in the snapshot."""
    since_s: float
    """Time of the first sample that saw the transaction, in seconds since the watch began.

    0 means that the transaction may have begun earlier.
    """
    seconds: float
    """Time from the transaction's first to its last sample, in seconds."""
    grew_frames: int
    """Largest number of frames in the WAL that are newer than the snapshot."""
    lasts: bool = False
    """Whether the last sample of the watch saw the transaction."""


@dataclass(frozen=True, slots=True)
class ReaderWait:
    """Checkpoint that held the write lock while it waited for a reader.

    `holder` had the checkpoint lock and the write lock. It waited for one of two reasons. Either `reader` had
    an older snapshot, so that newer frames could not be copied. Or all frames were copied, but `reader` still
    used the WAL: a RESTART or TRUNCATE checkpoint waits until no process reads the WAL.
    """

    holder: int
    """Process of the checkpoint, as an index into `processes` of the watch."""
    reader: int
    """Process with the read lock, as an index into `processes` of the watch."""
    samples: int
    """Number of samples that saw the wait."""


@dataclass(frozen=True, slots=True)
class Event:
    """Change of the database file: deleted, replaced, or with a different kind of journal."""

    at_s: float
    """Time of the first sample after the change, in seconds since the watch began."""
    what: str
    """Kind of the change: deleted, replaced or journal."""
    journal: str = ""
    """Journal after a change of kind journal: wal or rollback; else empty."""


@dataclass(frozen=True, slots=True)
class Course:
    """Samples over time, added up in steps of equal length; data of the report's plots."""

    step_s: float = 0.1
    """Length of a step, in seconds."""
    samples: tuple[int, ...] = ()
    """Number of samples, per step."""
    held: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Number of samples with the write lock held, per step, by holder.

    The key is the holder's index in `processes` of the watch, as text, or "others".
    """
    frames: tuple[int, ...] = ()
    """Largest number of frames in the WAL, per step."""
    checkpointed: tuple[int, ...] = ()
    """Number of WAL frames copied into the database file by checkpoints, at the end of each step."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Result of a watch of a database that other programs use."""

    database: str
    """Database file, as on the command line."""
    asked: Watching
    """Options of the watch."""
    seconds: float = 0.0
    """Duration of the watch, in seconds."""
    samples: int = 0
    """Number of samples."""
    open_samples: int = 0
    """Number of samples that could see locks: in rollback mode, or WAL mode with -shm file.

    Without a -shm file, no process has a database in WAL mode open, except perhaps in exclusive mode.
    """
    longest_gap_s: float = 0.0
    """Longest time between two samples, in seconds."""
    journal: str = ""
    """Journal at the end: wal or rollback; empty if the file was missing or empty."""
    commits: int | None = None
    """Number of commits of all processes during the watch; null if unknown."""
    write: Holds = field(default_factory=Holds)
    """Holds of the write lock by any process. A hold ends when a sample sees the lock free."""
    processes: tuple[Process, ...] = ()
    """Processes that held locks, by samples with the write lock in descending order."""
    others: int = 0
    """Number of processes that `processes`, which has a limited length, omits."""
    pins: tuple[Pin, ...] = ()
    """Read transactions with an old snapshot, which prevents a reset of the WAL; the longest first."""
    waits: tuple[ReaderWait, ...] = ()
    """Checkpoints that held the write lock while they waited for a reader, the most frequent first."""
    without_gap_s: float = 0.0
    """Longest time in which every sample saw a reader of the WAL, in seconds.

    In this time, writers cannot start the WAL again from its first frame, and it grows.
    """
    page_bytes: int = 0
    """Size of a page of the WAL, in bytes; 0 if there was no WAL."""
    frames: int = 0
    """Largest number of frames in the WAL."""
    frames_now: int = 0
    """Number of frames in the WAL, at the last sample in which the wal-index could be read."""
    checkpointed: int = 0
    """Number of frames in `frames_now` that checkpoints had copied into the database file."""
    wal_bytes: int = 0
    """Largest size of the WAL file, in bytes."""
    wal_bytes_now: int = 0
    """Size of the WAL file at the end, in bytes."""
    openers: int | None = None
    """Largest number of processes with the database open at one time; null if the system cannot list them."""
    hidden: int = 0
    """Number of processes whose open files cannot be read."""
    links: int = 0
    """Number of names (hard links) of the file; 0 if unknown."""
    is_mount: bool = False
    """Whether the file itself is a mount point, such as a bind mount in a container."""
    hot_journal: bool = False
    """Whether a writer died in a transaction and left its rollback journal.

    The next program that opens the database rolls the transaction back.
    """
    held_too_long: int | None = None
    """Index of the process that held the write lock for longer than `until_held_s`, or null."""
    held_s: float = 0.0
    """Seconds for which process `held_too_long` held the write lock, including gaps of up to 0.1 s."""
    wal_full: bool = False
    """Whether the watch ended because the WAL file reached `until_wal_bytes`."""
    events: tuple[Event, ...] = ()
    """Changes of the database file (deleted, replaced, ...), in order of time; only the first are kept."""
    course: Course = Course()
    """Samples over time, added up in steps."""
    error: str | None = None
    """Reason why the watch ended early; null if complete or interrupted."""
