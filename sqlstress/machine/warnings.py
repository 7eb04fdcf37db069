"""What a reader of figures from these surroundings must know: pure functions of what was found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sqlstress.report import FileSystem, Host, SqliteBuild, SyncCost, Warning
from sqlstress.report.case import KEPT, SYNCHRONOUS, Settings
from sqlstress.report.power_failure import risk
from sqlstress.statistics.units import format_ms

# What the warnings are drawn from: the surroundings, and what is asked for in them.


_ON = frozenset({"1", "on", "yes", "true"})
# SQLite takes numbers and switches for the levels, too.
_LEVELS = {
    **{level: level for level in SYNCHRONOUS},
    **{str(number): level for number, level in enumerate(SYNCHRONOUS)},
    **dict.fromkeys(("on", "yes", "true"), "normal"),
    **dict.fromkeys(("no", "false"), "off"),
}


@dataclass(frozen=True, slots=True)
class DurabilitySettings:
    """The settings that decide what a commit waits for."""

    journal_mode: str
    """Lower case."""
    synchronous: str | None
    """off, normal, full or extra; None leaves it to the library."""
    fullfsync: bool
    """Whether it is asked for."""


def durability_settings(settings: Settings) -> DurabilitySettings:
    """Return what is asked for; a PRAGMA given by name counts, and the last one wins."""
    pragmas = {name.lower(): value.lower() for name, value in settings.pragmas}
    synchronous = pragmas.get("synchronous", settings.synchronous)
    fullfsync = pragmas.get("fullfsync")
    return DurabilitySettings(
        pragmas.get("journal_mode", settings.journal_mode),
        None if synchronous is None else _LEVELS.get(synchronous, synchronous),
        bool(settings.fullfsync) if fullfsync is None else fullfsync in _ON,
    )


def level(wish: DurabilitySettings, build: SqliteBuild) -> str:
    """Return the synchronous level that a wish comes to with a library: what is asked, or its default."""
    return wish.synchronous or default_level(build, wish.journal_mode)


def default_level(build: SqliteBuild, journal_mode: str) -> str:
    """Return the synchronous level that a library has when it is not told one.

    Source: SQLite's sqliteInt.h, where DEFAULT_WAL_SYNCHRONOUS follows DEFAULT_SYNCHRONOUS, and that is 2.
    """
    options = dict(option.partition("=")[::2] for option in build.compile_options)
    plain = options.get("DEFAULT_SYNCHRONOUS", "2")
    number = options.get("DEFAULT_WAL_SYNCHRONOUS", plain) if journal_mode == "wal" else plain
    return _LEVELS.get(number, "full")


@dataclass(frozen=True, slots=True)
class Facts:
    """The surroundings, and what is planned in them."""

    host: Host
    file_system: FileSystem
    builds: tuple[SqliteBuild, ...]
    """Empty when nothing is to be stored."""
    sync: SyncCost
    settings: tuple[Settings, ...]
    """Those of all planned cases."""
    most_workers: int
    """The greatest concurrency that is planned."""
    not_native: tuple[str, ...] = ()
    """Why the loop in Python drives a load although one in C could."""

    @property
    def wishes(self) -> tuple[DurabilitySettings, ...]:
        """What the cases ask for, each once."""
        return tuple(dict.fromkeys(map(durability_settings, self.settings)))

    @property
    def levels(self) -> frozenset[tuple[str, str]]:
        """The (journal mode, synchronous) that the cases come to with the libraries in use."""
        return frozenset(
            (wish.journal_mode, level(wish, build)) for wish in self.wishes for build in self.builds
        )

    @property
    def wal(self) -> bool:
        """Whether a case uses WAL, or may: an application that chooses itself."""
        return any(wish.journal_mode in ("wal", KEPT) for wish in self.wishes)

    @property
    def fullfsync(self) -> bool:
        """Whether a case asks for fullfsync."""
        return any(wish.fullfsync for wish in self.wishes)

    @property
    def macos(self) -> bool:
        """Whether the host runs macOS."""
        return self.host.system == "Darwin"

    @property
    def apple_builds(self) -> tuple[SqliteBuild, ...]:
        """The libraries that are Apple's: on macOS, and compiled to sync nothing per WAL commit."""
        option = "DEFAULT_WAL_SYNCHRONOUS=1"
        return tuple(build for build in self.builds if self.macos and option in build.compile_options)


NO_DISK_UNDER_NS = 20_000
"""No disk writes and syncs a block faster than this."""
TICK_OVER_NS = 5_000_000
"""A sleep of 1 ms that takes longer was rounded up to the system's clock tick."""

_MEMORY = frozenset({"tmpfs", "ramfs", "rootfs", "devtmpfs"})
# Also with a suffix, as in nfs4, fuse.sshfs and virtiofs.virtiofs0; fakeowner is Docker Desktop's.
_SHARED = (
    *("virtiofs", "9p", "nfs", "cifs", "smb", "fuse", "vboxsf", "prl_fs", "vmhgfs", "fakeowner", "drvfs"),
    *("afpfs", "webdav", "davfs", "afs", "ceph", "glusterfs", "lustre", "beegfs", "gpfs"),
    *("macfuse", "osxfuse", "osxfs"),
)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


Rule = Callable[[Facts], Iterable[Warning]]


def warn(facts: Facts) -> tuple[Warning, ...]:
    """Return the warnings that apply, the serious ones first."""
    rules = (*_STORAGE, *_HOST) if facts.builds else _HOST
    found = [warning for rule in rules for warning in rule(facts)]
    return tuple(sorted(found, key=lambda warning: not warning.serious))


def sync_does_nothing(facts: Facts) -> Iterator[Warning]:
    """Memory, a volatile overlay, or a sync that is faster than any disk."""
    mounted, cost = facts.file_system, facts.sync.overwrite_p50_ns
    what = ""
    if mounted.kind in _MEMORY or "ramdisk" in mounted.options.split(","):
        what = f"{mounted.kind} is memory here, where a sync does nothing"
    elif mounted.kind == "overlay" and "volatile" in mounted.options.split(","):
        what = "This overlay is mounted volatile, so that a sync does nothing"
    elif cost < NO_DISK_UNDER_NS and not (facts.macos and facts.sync.primitive == "fsync"):
        # A plain fsync on macOS is as fast as this without being nothing; it has a warning of its own.
        what = f"A sync takes {cost / 1000:.1f} µs here, too fast for a disk"
    if what:
        text = f"{what}: a power failure can lose acknowledged commits; choose a --dir on a disk."
        yield Warning("sync-does-nothing", text, True)


def shared_file_system(facts: Facts) -> Iterator[Warning]:
    """A network file system, or one that is shared with another system."""
    mounted = facts.file_system
    if not mounted.kind.lower().startswith(_SHARED) and "remote" not in mounted.options.split(","):
        return
    name = mounted.kind or mounted.device
    risk = "WAL can corrupt a database there" if facts.wal else "locks may not hold there"
    text = f"{name} is a shared or network file system: {risk}; choose a --dir on a local disk."
    yield Warning("shared-file-system", text, facts.wal)


def wal_reset_bug(facts: Facts) -> Iterator[Warning]:
    """A library in which two connections can corrupt a database in WAL mode."""
    versions = dict.fromkeys(build.version for build in facts.builds if has_wal_reset_bug(build.version))
    if versions:
        yield Warning(
            "sqlite-wal-reset-bug",
            f"SQLite {' and '.join(versions)} can corrupt a WAL database (WAL-reset bug): "
            "use 3.51.3 or later, unless your distribution has patched it.",
            facts.wal,
        )


def has_wal_reset_bug(version: str) -> bool:
    """Say whether SQLite released this version with the WAL-reset bug.

    Source: sqlite.org/wal.html, "The WAL-Reset Bug": 3.7.0 to 3.51.2, but for the patches 3.44.6 and 3.50.7.
    """
    found = _VERSION.match(version)
    if not found:
        return False
    major, minor, patch = map(int, found.groups())
    patched_from = {(3, 44): 6, (3, 50): 7}.get((major, minor))
    if patched_from is not None and patch >= patched_from:
        return False
    return (3, 7, 0) <= (major, minor, patch) < (3, 51, 3)


def fullfsync_without_effect(facts: Facts) -> Iterator[Warning]:
    """PRAGMA fullfsync reads back 1 wherever it is asked for."""
    if facts.fullfsync and not facts.macos:
        yield Warning(
            "fullfsync-without-effect",
            "fullfsync works on macOS only, though it reads back 1 here too: "
            f"a sync is {facts.sync.primitive} all the same; leave it out.",
            True,
        )


def macos_fsync_not_durable(facts: Facts) -> Iterator[Warning]:
    """Full synchronous commits that stop at the drive's cache."""
    durable = {"full", "extra"}
    plain = [wish for wish in facts.wishes if not wish.fullfsync]
    if facts.macos and any(level(wish, build) in durable for wish in plain for build in facts.builds):
        yield Warning(
            "macos-fsync-not-durable",
            "On macOS fsync leaves commits in the drive's cache, where a power failure can lose them: "
            "turn fullfsync on to survive one.",
        )


def apple_build(facts: Facts) -> Iterator[Warning]:
    """Apple's library, left to its own default of `synchronous`."""
    left_alone = any(wish.journal_mode == "wal" and wish.synchronous is None for wish in facts.wishes)
    if facts.apple_builds and left_alone:
        yield Warning(
            "apple-build",
            "Apple's SQLite syncs nothing per WAL commit unless told to: "
            "give --synchronous, or its figures compare with no other build's.",
        )


def apple_fullfsync(facts: Facts) -> Iterator[Warning]:
    """Apple's library, whose fullfsync is reported to be another call than SQLite's own."""
    if facts.apple_builds and facts.fullfsync:
        yield Warning(
            "apple-fullfsync",
            "Apple's SQLite reportedly answers fullfsync with the weaker F_BARRIERFSYNC: "
            "use a driver with a SQLite of its own, such as apsw.",
        )


def durability(facts: Facts) -> Iterator[Warning]:
    """What a power failure can take, by journal mode and synchronous; what has no journal is told apart."""
    for journal, synchronous in sorted(facts.levels):
        found = risk(journal, synchronous)
        if found.cure:
            where = "in WAL mode" if journal == "wal" else f"with a {journal.upper()} journal"
            yield Warning(
                "durability",
                f"synchronous={synchronous.upper()} {where}: {found.told}; "
                f"choose --synchronous {found.cure}.",
            )


def no_journal_on_disk(facts: Facts) -> Iterator[Warning]:
    """Journal modes that leave nothing from which to roll back."""
    for mode in sorted({wish.journal_mode for wish in facts.wishes} & {"off", "memory"}):
        yield Warning(
            "no-journal-on-disk",
            f"journal_mode={mode.upper()} has no journal on disk: a crash amid a transaction can corrupt "
            "the database; choose wal or delete.",
            True,
        )


def tick_rounded_sleep(facts: Facts) -> Iterator[Warning]:
    """A clock whose ticks are longer than the waits of SQLite's busy handler."""
    slept = facts.host.sleep_1ms_ns
    if slept is not None and slept > TICK_OVER_NS:
        yield Warning(
            "tick-rounded-sleep",
            f"A sleep of 1 ms takes {format_ms(slept)} ms here: SQLite's busy handler waits longer than it "
            "means to; compare with --busy fair.",
        )


def few_cores(facts: Facts) -> Iterator[Warning]:
    """More processes than processors."""
    cores = facts.host.cores
    if cores is not None and facts.most_workers > cores:
        many = f"Up to {facts.most_workers} processes on {cores} core{'s' * (cores != 1)}"
        yield Warning(
            "few-cores",
            f"{many}: beyond {cores} they take turns at the processor, and the figures say as much of the "
            "system's scheduler as of SQLite.",
        )


def python_loop(facts: Facts) -> Iterator[Warning]:
    """The slower loop, for want of the other one."""
    for reason in facts.not_native:
        yield Warning(
            "python-loop",
            f"The Python loop drives the load: {reason}. Its figures are of Python's binding too, and "
            "compare with none of the native loop.",
            True,
        )


_STORAGE: tuple[Rule, ...] = (
    sync_does_nothing,
    shared_file_system,
    wal_reset_bug,
    fullfsync_without_effect,
    no_journal_on_disk,
    macos_fsync_not_durable,
    apple_build,
    apple_fullfsync,
    durability,
)
_HOST: tuple[Rule, ...] = (tick_rounded_sleep, few_cores, python_loop)
