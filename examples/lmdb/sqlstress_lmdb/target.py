"""LMDB as a target: what `Target` in sqlstress/targets/place.py asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlstress.targets.place import Target
from sqlstress_lmdb import settings
from sqlstress_lmdb.place import LmdbPlace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report import SqliteBuild
    from sqlstress.report.case import Case, Server


class LmdbTarget(Target):
    FILES = r"kv(_\d+)?\.mdb(-lock)?"
    DESCRIPTORS = 3
    """The data, once more to sync what says where it begins, and the lock file."""

    def open_place(self, case: Case, where: Path) -> LmdbPlace:
        return LmdbPlace(case, where)

    def checked(self, case: Case, server: Server, anyway: bool) -> Case:
        return settings.checked(case)

    def preload(self, driver: str) -> tuple[str, ...]:
        return "sqlstress_lmdb.keyvalue", "lmdb"

    def explain(self, driver: str, error: Exception) -> str:
        return settings.explained(error)

    def durability(self, case: Case, effective: Mapping[str, str]) -> str:
        return settings.durability(case, effective)

    def foresees(self, error: Exception) -> bool:
        return settings.foresees(error)

    def untold(self, driver: str) -> str:
        return "LMDB does not say what it waits for"

    def describe_available(self, driver: str, address: Dsn | None) -> str:
        build = self.describe(driver)
        return f"{build.library} {build.version} ({build.driver_version})"

    def describe(self, driver: str) -> SqliteBuild:
        from sqlstress.report import SqliteBuild
        from sqlstress_lmdb.environments import load

        lmdb = load()
        version = ".".join(map(str, lmdb.version()))
        return SqliteBuild(driver, f"py-lmdb {lmdb.__version__}", version, "", (), library="LMDB")


TARGET = LmdbTarget()
