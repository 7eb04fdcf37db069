"""What a commit waits for, by the settings that were read back: as data, and in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlstress.report import SqliteBuild, SyncCost
from sqlstress.report.power_failure import at_server, risk
from sqlstress.statistics.units import format_ms

# Syncs of a one-page commit at synchronous OFF, NORMAL, FULL and EXTRA, as counted with strace on Linux.
_LEVELS = ("off", "normal", "full", "extra")
_OF_FILES = {
    "wal": (0, 0, 1, 1),
    "delete": (0, 2, 3, 3),
    "truncate": (0, 2, 4, 4),
    "persist": (0, 3, 4, 4),
    "memory": (0, 1, 1, 1),
    "off": (0, 1, 1, 1),
}
_OF_FOLDERS = {"delete": (0, 1, 1, 2), "truncate": (0, 1, 1, 1), "persist": (0, 1, 1, 1)}
# Windows syncs no folder, and on macOS a folder gets a plain fsync whatever the files get.
_FILES_ONLY = frozenset({"FlushFileBuffers", "F_FULLFSYNC"})


@dataclass(frozen=True, slots=True)
class Durability:
    """What a commit waits for."""

    journal: str
    """Effective journal_mode."""
    level: str
    """Effective synchronous: off, normal, full or extra."""
    primitive: str | None
    """The call that syncs; None where it is not known."""

    @property
    def name(self) -> str:
        """The settings, as people write them."""
        journal = "WAL" if self.journal == "wal" else f"{self.journal.upper()} journal"
        return f"{journal}, synchronous={self.level.upper()}"

    @property
    def syncs(self) -> int:
        """How many syncs a commit of one page waits for; those of folders only if the call is known."""
        column = _LEVELS.index(self.level)
        without_folders = self.primitive is None or self.primitive in _FILES_ONLY
        folders = 0 if without_folders else _OF_FOLDERS.get(self.journal, (0, 0, 0, 0))[column]
        return _OF_FILES[self.journal][column] + folders

    @property
    def reaches_the_medium(self) -> bool:
        """Whether the call flushes the drive's cache too; a plain fsync, as on macOS, does not."""
        return self.primitive != "fsync"


def durability_of(effective: Mapping[str, str], sync: SyncCost | None) -> Durability | None:
    """Return what commits wait for, by the settings that were read back; None where they were not."""
    journal, level = effective.get("journal_mode", ""), effective.get("synchronous", "")
    if journal not in _OF_FILES or level not in _LEVELS:
        return None
    primitive = (sync.primitive if sync else None) or None
    if primitive == "F_FULLFSYNC" and effective.get("fullfsync") != "1":
        primitive = "fsync"  # the call that was timed is another case's
    return Durability(journal, level, primitive)


_UNKNOWN = "Durability unknown: journal_mode and synchronous were not read back."


def describe_durability(effective: Mapping[str, str], sync: SyncCost | None) -> str:
    """Return what a commit waits for, and what may be lost all the same, as a sentence.

    `effective` are the settings as SQLite answered them (journal_mode, synchronous, fullfsync), or a server.
    """
    if of_server := at_server(effective):
        return f"{of_server[0].upper()}{of_server[1:]}."
    found = durability_of(effective, sync)
    if found is None:
        # Connections to the same database may differ.
        answers = {name: effective.get(name, "") for name in ("journal_mode", "synchronous")}
        differing = [
            f"{name} is {said.replace(' / ', ' or ')}" for name, said in answers.items() if " / " in said
        ]
        depends = f"Durability depends on the connection: {' and '.join(differing)}."
        return depends if differing else _UNKNOWN
    no_journal = found.journal in ("memory", "off")
    caveats = (
        "a crash can corrupt the database" if no_journal else "",
        # Whoever has no journal need not be told of the power failure beside the crash.
        "" if no_journal and found.syncs else risk(found.journal, found.level).told,
        "fsync leaves it in the drive's cache" if found.syncs and not found.reaches_the_medium else "",
    )
    return f"{'; '.join(filter(None, (_waited(found, sync), *caveats)))}."


def _waited(found: Durability, sync: SyncCost | None) -> str:
    """Return what a commit waits for, with the settings and what it costs."""
    cost = ""
    if sync and found.syncs and found.primitive == sync.primitive:
        shown = format_ms(sync.overwrite_p50_ns) if sync.overwrite_p50_ns >= 1000 else "under 0.001"
        cost = f" (p50 {shown} ms{' each' * (found.syncs > 1)} here)"
    return f"{found.name}: {waits(found)}{cost}"


def waits(found: Durability) -> str:
    """Return what a commit waits for, without the settings and what it costs."""
    if not found.syncs:
        return "no commit waits for a sync"
    if found.primitive is None:
        return "each commit waits for a sync, by an unknown call"
    calls = f"one {found.primitive}" if found.syncs == 1 else f"{found.syncs} {found.primitive} calls"
    return f"each commit waits for {calls}"


# SQLite's builds, and in what those of several reports, or of the arms of a test, differ: in words.


Builds = Sequence[SqliteBuild | None]
"""One of each report or arm; None where it is not known."""

TELLING = (
    *("DEFAULT_SYNCHRONOUS", "DEFAULT_WAL_SYNCHRONOUS", "DEFAULT_CKPTFULLFSYNC"),
    *("DEFAULT_WAL_AUTOCHECKPOINT", "DEFAULT_JOURNAL_SIZE_LIMIT", "DEFAULT_PAGE_SIZE", "DEFAULT_CACHE_SIZE"),
    *("ENABLE_PREUPDATE_HOOK", "ENABLE_SETLK_TIMEOUT", "THREADSAFE"),
)
"""The compile options that change what a commit costs or what it is worth."""


def telling(options: Iterable[str]) -> str:
    """Return those compile options that tell something, as a list."""
    return ", ".join(option for option in options if option.partition("=")[0] in TELLING)


def build_of(driver: str, builds: Iterable[SqliteBuild]) -> SqliteBuild | None:
    """Return the build behind a driver; None where its version is not known."""
    return next((build for build in builds if build.driver == driver and build.version), None)


def versions(builds: Builds) -> list[str | None]:
    """Return the versions; with their check-ins where one version stands for several."""
    short = _each(builds, version)
    long = _each(builds, lambda build: f"{version(build)} ({build.source_id})")
    return long if len(set(long)) > len(set(short)) else short


def version(build: SqliteBuild) -> str:
    """Return a version; of another library than SQLite with its name."""
    return build.version if build.library == "SQLite" else f"{build.library} {build.version}"


def own_options(builds: Builds) -> list[str | None]:
    """Return the telling compile options that only some have."""
    known = [set(build.compile_options) for build in builds if build]
    common = set.intersection(*known) if known else set()

    def own(build: SqliteBuild) -> str:
        return telling(option for option in build.compile_options if option not in common) or "none of these"

    return _each(builds, own)


def _each(builds: Builds, text: Callable[[SqliteBuild], str]) -> list[str | None]:
    return [text(build) if build else None for build in builds]
