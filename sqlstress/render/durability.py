"""What a commit waits for, in a sentence, by the settings that were read back."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstress.report import SyncCost
from sqlstress.units import format_ms

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

_ON_POWER_FAILURE = {
    ("wal", "normal"): "a power failure can lose the last commits",
    ("delete", "normal"): "a power failure can undo the last commit",
    ("delete", "full"): "a power failure can undo the last commit",
    ("truncate", "normal"): "a power failure can undo the last commit",
}


def describe_durability(effective: Mapping[str, str], sync: SyncCost) -> str:
    """Return what a commit waits for, and what may be lost all the same, as a sentence.

    `effective` are the settings as SQLite answered them: journal_mode, synchronous, fullfsync.
    """
    journal, level = effective.get("journal_mode", ""), effective.get("synchronous", "")
    if journal not in _OF_FILES or level not in _LEVELS:
        return "What a commit waits for is not known: journal_mode and synchronous were not read back."
    name = "WAL" if journal == "wal" else f"{journal.upper()} journal"
    primitive = _primitive(effective, sync)
    count = _syncs(journal, level, primitive)
    cost = _cost(sync, count) if primitive == sync.primitive else ""
    waits = (
        f"each commit waits for {_calls(count, primitive)}{cost}" if count else "no commit waits for a sync"
    )
    caveats = "".join(f"; {text}" for text in _caveats(journal, level, primitive) if text)
    return f"{name}, synchronous={level.upper()}: {waits}{caveats}."


def _primitive(effective: Mapping[str, str], sync: SyncCost) -> str:
    """Return the call that commits wait for: the one that was timed may be another case's."""
    if sync.primitive == "F_FULLFSYNC" and effective.get("fullfsync") != "1":
        return "fsync"
    return sync.primitive


def _syncs(journal: str, level: str, primitive: str) -> int:
    column = _LEVELS.index(level)
    folders = 0 if primitive in _FILES_ONLY or journal not in _OF_FOLDERS else _OF_FOLDERS[journal][column]
    return _OF_FILES[journal][column] + folders


def _calls(count: int, primitive: str) -> str:
    return f"one {primitive}" if count == 1 else f"{count} {primitive} calls"


def _cost(sync: SyncCost, count: int) -> str:
    shown = format_ms(sync.overwrite_p50_ns) if sync.overwrite_p50_ns >= 1000 else "under 0.001"
    return f" (p50 {shown} ms{' each' * (count > 1)} here)"


def _caveats(journal: str, level: str, primitive: str) -> tuple[str, ...]:
    crash = "a crash can corrupt the database" if journal in ("memory", "off") else ""
    if level == "off":
        return crash, "a power failure can lose commits or corrupt the database"
    cache = (
        "fsync leaves it in the drive's cache"
        if primitive == "fsync" and _syncs(journal, level, primitive)
        else ""
    )
    return crash, _ON_POWER_FAILURE.get((journal, level), ""), cache
