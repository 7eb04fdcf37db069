"""LMDB's settings: supported settings of a case, synchronization of commits, and explanations of errors.

Source: lmdb.h, "Environment Flags": MDB_NOMETASYNC may undo the last committed transaction and keeps the
database whole; MDB_NOSYNC may corrupt it where the file system does not keep the order of writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlstress.errors import UsageError, error_message, plainly
from sqlstress.target import LAST_LOST, SYNCED, UNSAFE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlstress.report.case import Case

FLAGS = {
    "full": {"sync": True, "metasync": True},
    "normal": {"sync": True, "metasync": False},
    "off": {"sync": False, "metasync": False},
}
"""synchronous → flags with which an environment is opened."""
_WORTH = {"full": SYNCED, "normal": LAST_LOST, "off": UNSAFE}
_ADVICE = {
    "MapFullError": "lower --key-space, --value-size or --batch, or spread it over more --buckets",
    "ReadersFullError": "another program reads it: end that, or lower --concurrency",
    "DiskError": "free some space there, or choose another --dir",
    "MemoryError": "the memory map is too large for this system: lower --key-space or --value-size",
}
"""Remedies, by the name of the binding's error."""


def flags_of(case: Case) -> dict[str, bool]:
    """Return the flags with which an environment is opened for a case."""
    return FLAGS[case.settings.synchronous or "full"]


def read_back(flags: Mapping[str, bool]) -> dict[str, str]:
    """Return an environment's sync settings, and `synchronous` as one word."""
    values = {name: bool(flags[name]) for name in ("sync", "metasync")}
    level = "off" if not values["sync"] else "full" if values["metasync"] else "normal"
    return {"synchronous": level, **{name: "on" if value else "off" for name, value in values.items()}}


def differences(case: Case, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (setting, requested value, effective value) for settings with a different effective value."""
    asked = read_back(flags_of(case))["synchronous"]
    answer = effective.get("synchronous")
    if answer not in (None, asked):
        yield "synchronous", asked, answer


def durability(case: Case, effective: Mapping[str, str]) -> str:
    level = effective.get("synchronous", "")
    if level not in _WORTH:
        return ""
    return f"{_WORTH[level]}: LMDB, sync {effective['sync']}, metasync {effective['metasync']}"


def checked(case: Case) -> Case:
    """Return a case with the settings that LMDB uses. Raises UsageError."""
    from sqlstress.report.case import KEEP_JOURNAL_MODE

    settings = case.settings
    if settings.pragmas:
        raise UsageError(
            f"PRAGMA {settings.pragmas[0][0]} is SQLite's, and LMDB has none: leave out --pragma."
        )
    if settings.synchronous not in (None, *FLAGS):
        raise UsageError(
            f"--synchronous {settings.synchronous} is not to be had with LMDB: use {', '.join(FLAGS)}."
        )
    return replace(case, settings=replace(settings, journal_mode=KEEP_JOURNAL_MODE))


def foresees(error: Exception) -> bool:
    """Return whether an error is LMDB's own."""
    return type(error).__module__.partition(".")[0] == "lmdb"


def explained(error: Exception) -> str:
    """Return a message with the error and its remedy."""
    if not foresees(error):
        return plainly(error)
    advice = _ADVICE.get(type(error).__name__)
    return f"LMDB: {error_message(error)}" + (f" ({advice})" if advice else "")
