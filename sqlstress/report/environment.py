"""Environment of a measurement: host, file system, SQLite builds and the cost of a sync."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Warning:
    """Warning about the environment, or about the figures of a run."""

    code: str
    """Name of the kind of warning, such as "sync-does-nothing"; stable between versions."""
    text: str
    """Description of the problem and of the remedy."""
    serious: bool = False
    """Whether commands that measure show the warning; `sqlstress doctor` shows all warnings."""


@dataclass(frozen=True, slots=True)
class Host:
    """Machine and Python of the measurement."""

    system: str
    """Operating system: Linux, Darwin or Windows; empty if unknown."""
    release: str
    """Release of the kernel or the operating system; empty if unknown."""
    machine: str
    """Processor architecture; empty if unknown."""
    processor: str
    """Model name of the processor; empty if unknown."""
    cores: int | None
    """Number of logical processors that sqlstress may use; None if unknown."""
    memory_bytes: int | None
    """Physical memory, in bytes; None if unknown."""
    python: str
    """Implementation and version of Python; empty if unknown."""
    sleep_1ms_ns: int | None
    """Time that a requested sleep of 1 ms really takes: median, in ns; None if unknown."""
    cpu_quota: float | None = None
    """Number of cores that a container's CPU quota allows; None without a quota."""

    @property
    def is_limited(self) -> bool:
        """Whether a CPU quota allows fewer cores than sqlstress could use without the quota."""
        return self.cpu_quota is not None and (self.cores is None or self.cpu_quota < self.cores)


@dataclass(frozen=True, slots=True)
class FileSystem:
    """File system of the database files."""

    kind: str
    """Type of the file system, such as ext4, apfs or NTFS; empty if unknown."""
    device: str
    """Mounted device; empty if unknown."""
    options: str
    """Mount options; empty if unknown."""


@dataclass(frozen=True, slots=True)
class SqliteBuild:
    """Driver, and the database library that it uses: SQLite, or a library that replaces SQLite."""

    driver: str
    """Name of the driver, as in the option --driver."""
    driver_version: str
    """Version of the Python package that calls the database library."""
    version: str
    """Version of the database library; empty if unknown."""
    source_id: str
    """Check-in of SQLite's source (from sqlite_source_id()); empty for another library."""
    compile_options: tuple[str, ...]
    """Result of PRAGMA compile_options; empty for another library."""
    memory_gets_per_s: float | None = None
    """Rows that one process reads per second, by key, in a :memory: database; None if not measured."""
    library: str = "SQLite"
    """Name of the library: SQLite, a fork, a rewrite, or another store."""


@dataclass(frozen=True, slots=True)
class SyncCost:
    """Time of a write of 4 KiB and its sync (transfer to the disk), in the folder of the databases."""

    primitive: str
    """System call that syncs: fdatasync, fsync, F_FULLFSYNC or FlushFileBuffers; empty if unknown."""
    append_p50_ns: int
    """Time of a write at the end of a file, and its sync: median, in ns."""
    append_p99_ns: int
    """Time of a write at the end of a file, and its sync: 99th percentile, in ns."""
    overwrite_p50_ns: int
    """Time of a write over an existing block, and its sync: median, in ns."""
    overwrite_p99_ns: int
    """Time of a write over an existing block, and its sync: 99th percentile, in ns."""
    samples: int
    """Number of timed writes of each kind (append, overwrite)."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Machine, file system and libraries on which the figures of a report depend."""

    host: Host
    """Machine and Python."""
    file_system: FileSystem
    """File system of the database files."""
    builds: tuple[SqliteBuild, ...]
    """Database library of each driver in the report; empty if unknown."""
    sync: SyncCost | None
    """Cost of a sync in the folder of the databases before the measurement; None if not measured."""
    warnings: tuple[Warning, ...] = ()
    """Warnings about the environment."""
    sync_after: SyncCost | None = None
    """Cost of a sync after the measurement; None if not measured."""
    sync_again: SyncCost | None = None
    """Second sample of the cost of a sync before the measurement; None without a second sample."""
    sync_after_again: SyncCost | None = None
    """Second sample of the cost of a sync after the measurement; None if the cost had hardly changed."""
