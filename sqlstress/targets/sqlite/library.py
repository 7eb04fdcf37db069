"""What a driver's SQLite library is: its part of the fingerprint."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from sqlstress.report import SqliteBuild
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS
from sqlstress.report.power_failure import GOOD, LOST, risk
from sqlstress.target import IN_CACHE, LAST_LOST, SYNCED, UNSAFE
from sqlstress.targets.sqlite.drivers import load_driver

_GETS = 2_000


def describe(name: str) -> SqliteBuild:
    """Return the fingerprint of a driver's SQLite library, with a short in-memory measurement."""
    driver = load_driver(name)
    binding, library = driver.versions()
    connection = driver.connect(Path(":memory:"), 0, None)
    try:
        source_id = str(connection.rows("SELECT sqlite_source_id()")[0][0])
        options = tuple(str(row[0]) for row in connection.rows("PRAGMA compile_options"))
        connection.rows("CREATE TABLE kv (key INTEGER PRIMARY KEY, value INTEGER) WITHOUT ROWID")
        connection.run_many("INSERT INTO kv VALUES (?, ?)", ((key, key) for key in range(10_000)))
        get = connection.scalar("SELECT value FROM kv WHERE key = ?")
        begun = time.perf_counter()
        for key in range(_GETS):
            get((key * 7919 % 10_000,))
        return SqliteBuild(
            name, binding, library, source_id, options, _GETS / (time.perf_counter() - begun), driver.LIBRARY
        )
    finally:
        connection.close()


# What a commit is worth with SQLite, on the scale that all targets share.


_WORTH = {GOOD: SYNCED, LOST: LAST_LOST}


def durability(effective: Mapping[str, str]) -> str:
    """Return it by the settings that were read back; "" where they were not, or differ."""
    journal, level = effective.get("journal_mode", ""), effective.get("synchronous", "")
    if journal not in JOURNAL_MODES or level not in SYNCHRONOUS:
        return ""
    worth = _WORTH.get(risk(journal, level).worst, UNSAFE)
    if worth == SYNCED and sys.platform == "darwin" and effective.get("fullfsync") != "1":
        worth = IN_CACHE
    return f"{worth}: {journal.upper()} journal, synchronous={level.upper()}"
