"""Environment of a measurement: host, file system, SQLite builds and the cost of a sync."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Warning:
    """Warning about the environment, or about the figures of a run."""

    code: str
    """Stable name, such as "sync-does-nothing"."""
    text: str
    """Description of the problem, and what to do."""
    serious: bool = False
    """Whether it is shown with every run, and not only by `sqlstress doctor`."""


@dataclass(frozen=True, slots=True)
class Host:
    """Machine and Python of the measurement."""

    system: str
    """Linux, Darwin or Windows; this and the other texts are empty if unknown."""
    release: str
    """Release of the kernel or the system."""
    machine: str
    """Processor architecture."""
    processor: str
    """Model name of the processor."""
    cores: int | None
    """Number of logical processors that this process may use; None if unknown."""
    memory_bytes: int | None
    """Physical memory, in bytes; None if unknown."""
    python: str
    """Implementation and version of Python."""
    sleep_1ms_ns: int | None
    """Median real length of a sleep of 1 ms, in ns; None if unknown."""
    cpu_quota: float | None = None
    """Number of cores that a container's CPU quota allows; None if there is no quota."""

    @property
    def is_limited(self) -> bool:
        """Whether a CPU quota allows fewer cores than this process may use."""
        return self.cpu_quota is not None and (self.cores is None or self.cpu_quota < self.cores)


@dataclass(frozen=True, slots=True)
class FileSystem:
    """File system of the database files."""

    kind: str
    """Type as the system names it: ext4, apfs, NTFS; this and the other texts are empty if unknown."""
    device: str
    """Mounted device."""
    options: str
    """Mount options."""


@dataclass(frozen=True, slots=True)
class SqliteBuild:
    """Driver and its library: SQLite, or a library that replaces it."""

    driver: str
    """Name in the registry of drivers."""
    driver_version: str
    """Version of the driver's binding."""
    version: str
    """Version of the library."""
    source_id: str
    """Result of sqlite_source_id(), the check-in of the build; empty if the library is not SQLite."""
    compile_options: tuple[str, ...]
    """Result of PRAGMA compile_options; empty if the library is not SQLite."""
    memory_gets_per_s: float | None = None
    """Gets per second of one process from an in-memory table of 10,000 rows, as context; None if not
    measured."""
    library: str = "SQLite"
    """Name of the library: SQLite, a fork or a rewrite of it, or another store."""


@dataclass(frozen=True, slots=True)
class SyncCost:
    """Cost of a sync after a write of 4 KiB, in the folder of the databases."""

    primitive: str
    """System call: fdatasync, fsync, F_FULLFSYNC or FlushFileBuffers."""
    append_p50_ns: int
    """Write at the end of the file and sync: median, in ns."""
    append_p99_ns: int
    """Write at the end of the file and sync: 99th percentile, in ns."""
    overwrite_p50_ns: int
    """Write over an existing block and sync: median, in ns."""
    overwrite_p99_ns: int
    """Write over an existing block and sync: 99th percentile, in ns."""
    samples: int
    """Number of timed syncs of each kind."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Environment on which the figures of a report depend."""

    host: Host
    """Machine and Python."""
    file_system: FileSystem
    """File system of the database files."""
    builds: tuple[SqliteBuild, ...]
    """Library of each driver in the report; empty if unknown."""
    sync: SyncCost | None
    """Cost of a sync on that file system before the measurement; None if not measured."""
    warnings: tuple[Warning, ...] = ()
    """Warnings about the environment."""
    sync_after: SyncCost | None = None
    """Cost of a sync after the measurement; None if not measured."""
    sync_again: SyncCost | None = None
    """Second sample before the measurement, to confirm a difference; None if it was not taken."""
    sync_after_again: SyncCost | None = None
    """Second sample after the measurement; None if the first sample showed no difference."""
