"""Warnings about facts of the machine that distort figures or endanger data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstress.report import FileSystem, Host, SqliteBuild, SyncCost, Warning
from sqlstress.report.case import KEEP_JOURNAL_MODE, SYNCHRONOUS, Settings
from sqlstress.report.power_failure import power_failure_risk
from sqlstress.sqlite_codes import has_wal_reset_bug
from sqlstress.statistics.units import format_ms

_ON = frozenset({"1", "on", "yes", "true"})
# SQLite accepts numbers and switches as levels of `synchronous`, too.
_LEVELS = {
    **{level: level for level in SYNCHRONOUS},
    **{str(number): level for number, level in enumerate(SYNCHRONOUS)},
    **dict.fromkeys(("on", "yes", "true"), "normal"),
    **dict.fromkeys(("no", "false"), "off"),
}


def durability_settings(settings: Settings) -> Settings:
    """Return the settings on which durability depends. If a pragma is repeated, the last value counts."""
    pragmas = {name.lower(): value.lower() for name, value in settings.pragmas}
    synchronous = pragmas.get("synchronous", settings.synchronous)
    fullfsync = pragmas.get("fullfsync")
    return Settings(
        journal_mode=pragmas.get("journal_mode", settings.journal_mode),
        synchronous=None if synchronous is None else _LEVELS.get(synchronous, synchronous),
        fullfsync=bool(settings.fullfsync) if fullfsync is None else fullfsync in _ON,
    )


def level(wish: Settings, build: SqliteBuild) -> str:
    """Return the value of `PRAGMA synchronous` that `wish` requests, or else the library's default.

    Source: sqliteInt.h: DEFAULT_WAL_SYNCHRONOUS defaults to DEFAULT_SYNCHRONOUS, which defaults to 2.
    """
    if wish.synchronous:
        return wish.synchronous
    options = dict(option.partition("=")[::2] for option in build.compile_options)
    number = options.get("DEFAULT_SYNCHRONOUS", "2")
    if wish.journal_mode == "wal":
        number = options.get("DEFAULT_WAL_SYNCHRONOUS", number)
    return _LEVELS.get(number, "full")


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Facts about the machine and the planned cases (sets of options), from which the warnings follow."""

    host: Host
    file_system: FileSystem
    builds: tuple[SqliteBuild, ...]
    """SQLite libraries in use; empty for a dry run, which has no database."""
    sync: SyncCost
    settings: tuple[Settings, ...]
    """Settings of each planned case."""
    most_workers: int
    """Highest concurrency of the planned cases."""
    not_native: tuple[str, ...] = ()
    """Reasons why the Python loop runs a load that the C loop could run."""

    @property
    def wishes(self) -> tuple[Settings, ...]:
        """Requested settings on which durability depends, of all cases, without duplicates."""
        return tuple(dict.fromkeys(map(durability_settings, self.settings)))

    @property
    def wal(self) -> bool:
        """Whether a case uses a WAL, or may use it if the user's application chooses the journal mode."""
        return any(wish.journal_mode in ("wal", KEEP_JOURNAL_MODE) for wish in self.wishes)

    @property
    def fullfsync(self) -> bool:
        """Whether a case requests fullfsync."""
        return any(wish.fullfsync for wish in self.wishes)

    @property
    def macos(self) -> bool:
        return self.host.system == "Darwin"

    @property
    def apple_builds(self) -> tuple[SqliteBuild, ...]:
        """Apple's own SQLite libraries, compiled so that a commit to the WAL does not sync."""
        option = "DEFAULT_WAL_SYNCHRONOUS=1"
        return tuple(build for build in self.builds if self.macos and option in build.compile_options)


NO_DISK_UNDER_NS = 20_000
"""Minimum plausible time of writing and syncing a block, in ns. A shorter time shows that no disk is used."""
TICK_OVER_NS = 5_000_000
"""Maximum plausible duration of a sleep of 1 ms, in ns. A longer sleep was rounded up to a clock tick."""

_MEMORY = frozenset({"tmpfs", "ramfs", "rootfs", "devtmpfs"})
# Prefixes of types such as nfs4, fuse.sshfs and virtiofs.virtiofs0. fakeowner is from Docker Desktop.
_SHARED = (
    *("virtiofs", "9p", "nfs", "cifs", "smb", "fuse", "vboxsf", "prl_fs", "vmhgfs", "fakeowner", "drvfs"),
    *("afpfs", "webdav", "davfs", "afs", "ceph", "glusterfs", "lustre", "beegfs", "gpfs"),
    *("macfuse", "osxfuse", "osxfs"),
)


def warn(facts: MachineFacts) -> tuple[Warning, ...]:
    """Return the warnings that apply, the serious ones first."""
    rules = (_disk_warnings, _library_warnings, _macos_warnings, _durability_warnings)
    applicable = (*rules, _host_warnings) if facts.builds else (_host_warnings,)
    warnings = [warning for rule in applicable for warning in rule(facts)]
    return tuple(sorted(warnings, key=lambda warning: not warning.serious))


def _disk_warnings(facts: MachineFacts) -> Iterator[Warning]:
    mounted, cost = facts.file_system, facts.sync.overwrite_p50_ns
    options = mounted.options.split(",")
    fault = ""
    if mounted.kind in _MEMORY or "ramdisk" in options:
        fault = f"{mounted.kind} is in memory, so a sync does nothing"
    elif mounted.kind == "overlay" and "volatile" in options:
        fault = "This overlay is mounted volatile, so a sync does nothing"
    elif cost < NO_DISK_UNDER_NS and not (facts.macos and facts.sync.primitive == "fsync"):
        # On macOS a plain fsync is this fast although it has an effect. Another warning explains this.
        fault = f"A sync takes {cost / 1000:.1f} µs here, too fast for a disk"
    if fault:
        text = f"{fault}: a power failure can lose acknowledged commits. Choose a --dir on a disk."
        yield Warning("sync-does-nothing", text, True)
    harm = "WAL can corrupt a database on it" if facts.wal else "locks may not work on it"
    if shared := shared_file_system(mounted, f"{harm}. Choose a --dir on a local disk", serious=facts.wal):
        yield shared


def shared_file_system(mounted: FileSystem, harm: str, *, serious: bool = True) -> Warning | None:
    """Return a warning with the text `harm` if other systems share the file system; else None."""
    if not mounted.kind.lower().startswith(_SHARED) and "remote" not in mounted.options.split(","):
        return None
    name = mounted.kind or mounted.device
    return Warning("shared-file-system", f"{name} is a shared or network file system: {harm}.", serious)


def _library_warnings(facts: MachineFacts) -> Iterator[Warning]:
    versions = dict.fromkeys(build.version for build in facts.builds if has_wal_reset_bug(build.version))
    if versions:
        yield Warning(
            "sqlite-wal-reset-bug",
            f"SQLite {' and '.join(versions)} can lose commits (WAL-reset bug). Run sqlstress hunt.",
            facts.wal,
        )
    if facts.fullfsync and not facts.macos:
        yield Warning(
            "fullfsync-without-effect",
            f"fullfsync has an effect on macOS only: a sync is {facts.sync.primitive} here, although "
            "fullfsync reads back as 1. Leave it out.",
            True,
        )
    for mode in sorted({wish.journal_mode for wish in facts.wishes} & {"off", "memory"}):
        yield Warning(
            "no-journal-on-disk",
            f"journal_mode={mode.upper()} has no journal on disk: a crash during a transaction can "
            "corrupt the database. Choose wal or delete.",
            True,
        )


def _macos_warnings(facts: MachineFacts) -> Iterator[Warning]:
    durable = {"full", "extra"}
    plain = [wish for wish in facts.wishes if not wish.fullfsync]
    if facts.macos and any(level(wish, build) in durable for wish in plain for build in facts.builds):
        yield Warning(
            "macos-fsync-not-durable",
            "On macOS, fsync leaves commits in the drive's cache, and a power failure can lose them. Use "
            "--fullfsync on to keep them.",
        )
    uses_default = any(wish.journal_mode == "wal" and wish.synchronous is None for wish in facts.wishes)
    if facts.apple_builds and uses_default:
        yield Warning(
            "apple-build",
            "Apple's SQLite does not sync WAL commits by default. Give --synchronous, or these figures "
            "are not comparable with other builds.",
        )
    if facts.apple_builds and facts.fullfsync:
        yield Warning(
            "apple-fullfsync",
            "Apple's SQLite reportedly uses the weaker F_BARRIERFSYNC for fullfsync. Use a driver with "
            "its own SQLite, such as apsw.",
        )


def _durability_warnings(facts: MachineFacts) -> Iterator[Warning]:
    levels = {(wish.journal_mode, level(wish, build)) for wish in facts.wishes for build in facts.builds}
    for journal, synchronous in sorted(levels):
        danger = power_failure_risk(journal, synchronous)
        if danger.cure:
            context = "in WAL mode" if journal == "wal" else f"with a {journal.upper()} journal"
            yield Warning(
                "durability",
                f"synchronous={synchronous.upper()} {context}: {danger.effect}. Choose --synchronous "
                f"{danger.cure}.",
            )


def _host_warnings(facts: MachineFacts) -> Iterator[Warning]:
    slept, cores = facts.host.sleep_1ms_ns, facts.host.cores
    if slept is not None and slept > TICK_OVER_NS:
        yield Warning(
            "tick-rounded-sleep",
            f"A sleep of 1 ms takes {format_ms(slept)} ms here, so SQLite's busy handler waits longer "
            "than intended. Do not compare waits for locks with those of other machines.",
        )
    if facts.host.is_limited:
        yield Warning(
            "cpu-quota",
            f"A CPU quota limits this container to {facts.host.cpu_quota:.3g} cores. When the quota is used "
            "up, all processes stop until the next period. Raise the quota for figures of SQLite alone.",
            True,
        )
    if cores is not None and facts.most_workers > cores:
        processes = f"Up to {facts.most_workers} processes on {cores} core{'s' * (cores != 1)}"
        yield Warning(
            "few-cores", f"{processes}: with more than {cores} processes you also measure the OS scheduler."
        )
    for reason in facts.not_native:
        yield Warning(
            "python-loop",
            f"The Python loop runs the load: {reason}. These figures include Python's overhead; do not "
            "compare them with native-loop results.",
            True,
        )
