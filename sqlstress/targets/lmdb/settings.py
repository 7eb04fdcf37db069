"""What of a case's settings means something to LMDB, and how a commit is synced with it.

Source: lmdb.h, "Environment Flags": MDB_NOMETASYNC may undo the last committed transaction and keeps the
database whole; MDB_NOSYNC may corrupt it where the file system does not keep the order of writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlstress.target import LAST_LOST, SYNCED, UNSAFE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlstress.report.case import Case

FLAGS = {
    "full": {"sync": True, "metasync": True},
    "normal": {"sync": True, "metasync": False},
    "off": {"sync": False, "metasync": False},
}
"""synchronous → how an environment is opened."""
_WORTH = {"full": SYNCED, "normal": LAST_LOST, "off": UNSAFE}


def refuses(case: Case) -> str | None:
    settings = case.settings
    if settings.pragmas:
        return f"PRAGMA {settings.pragmas[0][0]} is SQLite's, and LMDB has none: leave out --pragma."
    if settings.synchronous not in (None, *FLAGS):
        return f"--synchronous {settings.synchronous} is not to be had with LMDB: use {', '.join(FLAGS)}."
    return None


def flags_of(case: Case) -> dict[str, bool]:
    """Return how an environment is opened for a case."""
    return FLAGS[case.settings.synchronous or "full"]


def read_back(flags: Mapping[str, bool]) -> dict[str, str]:
    """Return the settings as an environment tells them, and what they are as one word."""
    told = {name: bool(flags[name]) for name in ("sync", "metasync")}
    level = "off" if not told["sync"] else "full" if told["metasync"] else "normal"
    return {"synchronous": level, **{name: "on" if value else "off" for name, value in told.items()}}


def differences(case: Case, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (setting, value asked for, answer) where another value was read back."""
    asked = read_back(flags_of(case))["synchronous"]
    answer = effective.get("synchronous")
    if answer not in (None, asked):
        yield "synchronous", asked, answer


def durability(case: Case, effective: Mapping[str, str]) -> str:
    level = effective.get("synchronous", "")
    if level not in _WORTH:
        return ""
    return f"{_WORTH[level]}: LMDB, sync {effective['sync']}, metasync {effective['metasync']}"
