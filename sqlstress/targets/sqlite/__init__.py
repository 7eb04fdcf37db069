"""The target SQLite (a target is a kind of database): drivers, files, settings, damage and locks."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from sqlstress.targets.place import Target
from sqlstress.targets.sqlite.drivers import DRIVERS, explain, load_driver
from sqlstress.targets.sqlite.place import SqlitePlace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report import SqliteBuild
    from sqlstress.report.case import Case
    from sqlstress.targets.views import ConnectionInfo

_GETS = 2_000


class SqliteTarget(Target):
    FILES = r"(kv(_\d+)?|wait)\.db(-wal|-shm|-journal|-spare)?"
    DESCRIPTORS = 6
    """Maximum number of file descriptors that the parent (main process) needs per database file.

    3 are for an idle connection, 2 for the connection of the checks, and 1 for a database that SQLite keeps
    open after an earlier connection.
    """

    def open_place(self, case: Case, where: Path) -> SqlitePlace:
        return SqlitePlace(case, where)

    def stand_in(self, folder: Path) -> ConnectionInfo:
        from sqlstress.targets.views import ConnectionInfo

        return ConnectionInfo(str((folder / "app.db").absolute()), {})

    def preload(self, driver: str) -> tuple[str, ...]:
        return "sqlstress.targets.sqlite.place", DRIVERS[driver], "sqlstress.targets.native._native"

    def explain(self, driver: str, error: Exception) -> str:
        return explain(driver, error)

    def durability(self, case: Case, effective: Mapping[str, str]) -> str:
        from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS
        from sqlstress.report.power_failure import GOOD, LOST, power_failure_risk
        from sqlstress.target import IN_CACHE, LAST_LOST, SYNCED, UNSAFE

        journal, level = effective.get("journal_mode", ""), effective.get("synchronous", "")
        if journal not in JOURNAL_MODES or level not in SYNCHRONOUS:
            return ""  # The settings were not read back, or they differ between files.
        durability = {GOOD: SYNCED, LOST: LAST_LOST}.get(power_failure_risk(journal, level).worst, UNSAFE)
        if durability == SYNCED and sys.platform == "darwin" and effective.get("fullfsync") != "1":
            durability = IN_CACHE
        return f"{durability}: {journal.upper()} journal, synchronous={level.upper()}"

    def lacks_native(self, driver: str) -> str | None:
        from sqlstress.targets.sqlite.connections import native_unavailable

        return native_unavailable(driver)

    def foresees(self, error: Exception) -> bool:
        return type(error).__module__.partition(".")[0] in DRIVERS

    def untold(self, driver: str) -> str | None:
        return self.lacks_native(driver)

    def unseen(self) -> str | None:
        from sqlstress.targets.sqlite.lock_holders import unavailable_reason

        return unavailable_reason()

    def describe_available(self, driver: str, address: Dsn | None) -> str:
        binding, library = load_driver(driver).versions()
        return f"SQLite {library} ({binding})"

    def describe(self, driver: str) -> SqliteBuild:
        from pathlib import Path

        from sqlstress.report import SqliteBuild

        with closing(load_driver(driver).connect(Path(":memory:"), 0)) as connection:
            source_id = str(connection.rows("SELECT sqlite_source_id()")[0][0])
            options = tuple(str(row[0]) for row in connection.rows("PRAGMA compile_options"))
            connection.rows("CREATE TABLE kv (key INTEGER PRIMARY KEY, value INTEGER) WITHOUT ROWID")
            connection.run_many("INSERT INTO kv VALUES (?, ?)", ((key, key) for key in range(10_000)))
            get = connection.scalar("SELECT value FROM kv WHERE key = ?")
            started_s = time.perf_counter()
            for key in range(_GETS):
                get((key * 7919 % 10_000,))
            gets_per_s = _GETS / (time.perf_counter() - started_s)
        binding, library = load_driver(driver).versions()
        return SqliteBuild(driver, binding, library, source_id, options, gets_per_s)


TARGET = SqliteTarget()
