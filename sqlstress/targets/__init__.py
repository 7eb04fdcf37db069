"""Key-value views over one database file, over hash-partitioned files, or over nothing at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.targets.keyvalue import COUNTERS, Operation, Store

if TYPE_CHECKING:
    from sqlstress.report.case import Case

DRY = "dry"

__all__ = ["COUNTERS", "DRY", "Operation", "Store", "open_store"]


def open_store(case: Case, folder: Path, worker: int, dry_value: Any) -> Store:
    """Open the store of a case for one worker; `dry_value` is what a store that does nothing answers."""
    if case.driver == DRY:
        from sqlstress.targets.dry.keyvalue import DryStore

        return DryStore(case.buckets, dry_value)
    from sqlstress.targets.sqlite.keyvalue import SqliteStore

    return SqliteStore(case, folder, worker)
