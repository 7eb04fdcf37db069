"""The fingerprint of where a report was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Warning:
    """Something about the surroundings that the reader of a figure must know."""

    code: str
    """Stable name, such as "sync-does-nothing"."""
    text: str
    """One sentence: what it is, and what to do."""
    serious: bool = False
    """Shown with every run, not only by `sqlstress doctor`."""


@dataclass(frozen=True, slots=True)
class Host:
    """The machine and the Python that ran."""

    system: str
    """Linux, Darwin or Windows; empty where it is not known, as the other texts."""
    release: str
    """The kernel's or system's release."""
    machine: str
    """Processor architecture."""
    processor: str
    """Model name of the processor."""
    cores: int | None
    """Logical processors that this process may use; None where it is not known."""
    memory_bytes: int | None
    """Physical memory; None where it is not known."""
    python: str
    """Implementation and version of Python."""
    sleep_1ms_ns: int | None
    """Median real length of a sleep of 1 ms, in nanoseconds; None where it is not known."""
    cpu_quota: float | None = None
    """Cores that a container's CPU quota allows; None if there is no quota, or the system has none."""

    @property
    def is_limited(self) -> bool:
        """Whether a CPU quota allows fewer cores than this process may use."""
        return self.cpu_quota is not None and (self.cores is None or self.cpu_quota < self.cores)


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Where the database files lie."""

    kind: str
    """Type as the system names it: ext4, apfs, NTFS; empty where it is not known, as the other texts."""
    device: str
    """What is mounted there."""
    options: str
    """Mount options."""


@dataclass(frozen=True, slots=True)
class SqliteBuild:
    """The library behind a driver: SQLite, or what stands in its place."""

    driver: str
    """Name in the registry of drivers."""
    driver_version: str
    """Version of the binding."""
    version: str
    """Version of the library."""
    source_id: str
    """sqlite_source_id(): the check-in that it was built from; empty of another library than SQLite."""
    compile_options: tuple[str, ...]
    """PRAGMA compile_options; none of another library."""
    memory_gets_per_s: float | None = None
    """Gets a second by one process from an in-memory table of 10,000 rows: context, not a result."""
    library: str = "SQLite"
    """What the library is called: SQLite, a fork or a rewrite of it, or another store."""


@dataclass(frozen=True, slots=True)
class SyncCost:
    """What one sync of a 4 KiB write costs in the folder of the databases."""

    primitive: str
    """The system call: fdatasync, fsync, F_FULLFSYNC or FlushFileBuffers."""
    append_p50_ns: int
    """Write at the end of the file and sync: median, in nanoseconds."""
    append_p99_ns: int
    """The same, 99th percentile."""
    overwrite_p50_ns: int
    """Write over an existing block and sync: median, in nanoseconds."""
    overwrite_p99_ns: int
    """The same, 99th percentile."""
    samples: int
    """Syncs timed of each kind."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything about the surroundings that a figure depends on."""

    host: Host
    """The machine and the Python that ran."""
    file_system: FileSystem
    """Where the database files lay."""
    builds: tuple[SqliteBuild, ...]
    """One for each driver that the report uses; none where the library is not known."""
    sync: SyncCost | None
    """What one sync costs there; None where it was not measured."""
    warnings: tuple[Warning, ...] = ()
    """What a reader must know of these surroundings."""
    sync_after: SyncCost | None = None
    """What a sync cost when everything had been measured; None where that was not looked at again."""
    sync_again: SyncCost | None = None
    """Second sample before the measurement, to confirm a difference; None if it was not taken."""
    sync_after_again: SyncCost | None = None
    """Second sample after the measurement; None if the first sample showed no difference."""
