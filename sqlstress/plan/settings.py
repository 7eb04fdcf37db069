"""What the options mean that say how every connection is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.report.case import Settings


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Return the settings; what an experiment has no option for is left to the SQLite library."""
    return Settings(
        journal_mode=values["journal-mode"],
        synchronous=values["synchronous"],
        fullfsync=values.get("fullfsync"),
        wal_autocheckpoint=values.get("wal-autocheckpoint"),
        page_size=values.get("page-size"),
        cache_size=values.get("cache-size"),
        mmap_size=values.get("mmap-size"),
        pragmas=values.get("pragma", ()),
        busy_timeout_ms=round(values["busy-timeout"] * 1000),
        busy=values.get("busy", "default"),
    )


def is_exclusive(values: Mapping[str, Any]) -> bool:
    """Return whether one connection locks a database for itself."""
    return any(name == "locking_mode" and value.lower() == "exclusive" for name, value in values["pragma"])


def check_locking(values: Mapping[str, Any]) -> None:
    """Raise UsageError when several processes are to share what one locks for itself."""
    if is_exclusive(values) and max(values["concurrency"]) > 1:
        raise UsageError(
            "PRAGMA locking_mode=exclusive lets one process in: use it with --concurrency 1 only."
        )
