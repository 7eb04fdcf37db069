"""Durability of a commit: the syncs for which it waits. Also: differences between SQLite builds.

A sync is a call, such as fdatasync, that makes the system write a file to the disk. Effective settings are
the values of pragmas that SQLite returned when they were read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlstress.report import SqliteBuild, SyncCost
from sqlstress.report.power_failure import power_failure_risk, server_durability
from sqlstress.statistics.units import format_ms

# Number of syncs of a one-page commit at each level of synchronous, counted with strace on Linux.
_LEVELS = ("off", "normal", "full", "extra")
_FILE_SYNCS = {
    "wal": (0, 0, 1, 1),
    "delete": (0, 2, 3, 3),
    "truncate": (0, 2, 4, 4),
    "persist": (0, 3, 4, 4),
    "memory": (0, 1, 1, 1),
    "off": (0, 1, 1, 1),
}
_FOLDER_SYNCS = {"delete": (0, 1, 1, 2), "truncate": (0, 1, 1, 1), "persist": (0, 1, 1, 1)}
# With these sync calls, syncs of folders do not count: SQLite syncs no folder on Windows, and uses a plain
# fsync for folders on macOS.
_FILES_ONLY = frozenset({"FlushFileBuffers", "F_FULLFSYNC"})


@dataclass(frozen=True, slots=True)
class Durability:
    """Durability of a commit: the effective settings, and the call that syncs."""

    journal: str
    level: str
    """Effective value of PRAGMA synchronous: off, normal, full or extra."""
    primitive: str | None
    """Name of the sync call, such as fdatasync; None if unknown."""

    @property
    def name(self) -> str:
        """Journal and level as text, such as "WAL, synchronous=NORMAL"."""
        journal = "WAL" if self.journal == "wal" else f"{self.journal.upper()} journal"
        return f"{journal}, synchronous={self.level.upper()}"

    @property
    def syncs(self) -> int:
        """Number of syncs that a commit of one page waits for, including syncs of folders."""
        column = _LEVELS.index(self.level)
        without_folders = self.primitive is None or self.primitive in _FILES_ONLY
        folders = 0 if without_folders else _FOLDER_SYNCS.get(self.journal, (0, 0, 0, 0))[column]
        return _FILE_SYNCS[self.journal][column] + folders

    @property
    def reaches_the_medium(self) -> bool:
        """Whether a sync also flushes the drive's cache. A plain fsync on macOS does not."""
        return self.primitive != "fsync"


def durability_of(effective: Mapping[str, str], sync: SyncCost | None) -> Durability | None:
    """Return the durability of a commit with the settings `effective`; None if they were not read back."""
    journal, level = effective.get("journal_mode", ""), effective.get("synchronous", "")
    if journal not in _FILE_SYNCS or level not in _LEVELS:
        return None
    primitive = (sync.primitive if sync else None) or None
    if primitive == "F_FULLFSYNC" and effective.get("fullfsync") != "1":
        primitive = "fsync"  # without PRAGMA fullfsync, SQLite calls fsync, although F_FULLFSYNC was timed
    return Durability(journal, level, primitive)


_UNKNOWN = "Durability unknown: journal_mode and synchronous were not read back."


def describe_durability(effective: Mapping[str, str], sync: SyncCost | None) -> str:
    """Return a sentence on the syncs of a commit, and on possible losses in a power failure."""
    if server_text := server_durability(effective):
        return f"{server_text[0].upper()}{server_text[1:]}."
    durability = durability_of(effective, sync)
    if durability is None:
        # If connections had different values of a setting, the values are joined by " / ".
        answers = {name: effective.get(name, "") for name in ("journal_mode", "synchronous")}
        differing = [
            f"{name} is {answer.replace(' / ', ' or ')}"
            for name, answer in answers.items()
            if " / " in answer
        ]
        depends = f"Durability depends on the connection: {' and '.join(differing)}."
        return depends if differing else _UNKNOWN
    no_journal = durability.journal in ("memory", "off")
    caveats = (
        "a crash can corrupt the database" if no_journal else "",
        # Without a journal file, even a crash of the program can corrupt the database. A power failure adds a
        # risk, lost commits, only if no commit waits for a sync.
        ""
        if no_journal and durability.syncs
        else power_failure_risk(durability.journal, durability.level).effect,
        "fsync leaves it in the drive's cache"
        if durability.syncs and not durability.reaches_the_medium
        else "",
    )
    return f"{'; '.join(filter(None, (_settings_and_syncs(durability, sync), *caveats)))}."


def _settings_and_syncs(durability: Durability, sync: SyncCost | None) -> str:
    cost = ""
    if sync and durability.syncs and durability.primitive == sync.primitive:
        shown = format_ms(sync.overwrite_p50_ns) if sync.overwrite_p50_ns >= 1000 else "under 0.001"
        cost = f" (p50 {shown} ms{' each' * (durability.syncs > 1)} here)"
    return f"{durability.name}: {syncs_clause(durability)}{cost}"


def syncs_clause(found: Durability) -> str:
    """Return a clause on the syncs of a commit: "each commit waits for 2 fdatasync calls"."""
    if not found.syncs:
        return "no commit waits for a sync"
    if found.primitive is None:
        return "each commit waits for a sync, by an unknown call"
    calls = f"one {found.primitive}" if found.syncs == 1 else f"{found.syncs} {found.primitive} calls"
    return f"each commit waits for {calls}"


Builds = Sequence[SqliteBuild | None]
"""SQLite build of each compared report, or of each variant of an A/B test; None if unknown."""

DURABILITY_OPTIONS = (
    *("DEFAULT_SYNCHRONOUS", "DEFAULT_WAL_SYNCHRONOUS", "DEFAULT_CKPTFULLFSYNC"),
    *("DEFAULT_WAL_AUTOCHECKPOINT", "DEFAULT_JOURNAL_SIZE_LIMIT", "DEFAULT_PAGE_SIZE", "DEFAULT_CACHE_SIZE"),
    *("ENABLE_PREUPDATE_HOOK", "ENABLE_SETLK_TIMEOUT", "THREADSAFE"),
)
"""Compile options of SQLite that change the cost or the durability of a commit."""


def durability_options(options: Iterable[str]) -> str:
    """Return the compile options that are in DURABILITY_OPTIONS, separated by commas."""
    return ", ".join(option for option in options if option.partition("=")[0] in DURABILITY_OPTIONS)


def build_of(driver: str, builds: Iterable[SqliteBuild]) -> SqliteBuild | None:
    """Return the SQLite build that a driver uses; None if its version is unknown."""
    return next((build for build in builds if build.driver == driver and build.version), None)


def versions(builds: Builds) -> list[str | None]:
    """Return each build's version, with its source id if builds of one version differ; None if unknown."""
    short = _per_build(builds, version)
    long = _per_build(builds, lambda build: f"{version(build)} ({build.source_id})")
    return long if len(set(long)) > len(set(short)) else short


def version(build: SqliteBuild) -> str:
    """Return the version of a build, such as "3.45.1", with the library's name if it is not SQLite."""
    return build.version if build.library == "SQLite" else f"{build.library} {build.version}"


def distinct_options(builds: Builds) -> list[str | None]:
    """Return each build's DURABILITY_OPTIONS that not all builds have; None for an unknown build."""
    options = [set(build.compile_options) for build in builds if build]
    common = set.intersection(*options) if options else set()

    def distinct_options(build: SqliteBuild) -> str:
        return (
            durability_options(option for option in build.compile_options if option not in common)
            or "none of these"
        )

    return _per_build(builds, distinct_options)


def _per_build(builds: Builds, text: Callable[[SqliteBuild], str]) -> list[str | None]:
    return [text(build) if build else None for build in builds]
