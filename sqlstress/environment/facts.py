"""What the warnings are drawn from: the surroundings, and what is asked for in them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.report import FileSystem, Host, SqliteBuild, SyncCost
from sqlstress.report.case import KEPT, SYNCHRONOUS, Settings

_ON = frozenset({"1", "on", "yes", "true"})
# SQLite takes numbers and switches for the levels, too.
_LEVELS = {
    **{level: level for level in SYNCHRONOUS},
    **{str(number): level for number, level in enumerate(SYNCHRONOUS)},
    **dict.fromkeys(("on", "yes", "true"), "normal"),
    **dict.fromkeys(("no", "false"), "off"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The settings that decide what a commit waits for."""

    journal_mode: str
    """Lower case."""
    synchronous: str | None
    """off, normal, full or extra; None leaves it to the library."""
    fullfsync: bool
    """Whether it is asked for."""


def asked(settings: Settings) -> Asked:
    """Return what is asked for; a PRAGMA given by name counts, and the last one wins."""
    pragmas = {name.lower(): value.lower() for name, value in settings.pragmas}
    synchronous = pragmas.get("synchronous", settings.synchronous)
    fullfsync = pragmas.get("fullfsync")
    return Asked(
        pragmas.get("journal_mode", settings.journal_mode),
        None if synchronous is None else _LEVELS.get(synchronous, synchronous),
        bool(settings.fullfsync) if fullfsync is None else fullfsync in _ON,
    )


def level(wish: Asked, build: SqliteBuild) -> str:
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
    def wishes(self) -> tuple[Asked, ...]:
        """What the cases ask for, each once."""
        return tuple(dict.fromkeys(map(asked, self.settings)))

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
