"""What the warnings are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.environment.asked import Asked, asked, level
from sqlstress.report import FileSystem, Host, SqliteBuild, SyncCost
from sqlstress.report.case import Settings


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
        """Whether a case uses WAL."""
        return any(wish.journal_mode == "wal" for wish in self.wishes)

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
