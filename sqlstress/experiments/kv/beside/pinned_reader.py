"""A process that reads once and then holds its snapshots: no checkpoint gets past what it sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlstress.engine.tally import Window
from sqlstress.report.case import Case
from sqlstress.statistics.series import Series
from sqlstress.targets.sqlite.connecting import connect, waiting_of
from sqlstress.targets.sqlite.partition import file_names

_TICK_S = 0.02


class PinnedReader:
    """Holds a snapshot of every file from before the load until it is dismissed."""

    def __init__(self, case: Case, folder: Path, _shared: tuple[Any, ...]) -> None:
        waiting = waiting_of(case, 0)
        self._files = [connect(case, folder / name, waiting) for name in file_names(case.buckets)]
        for connection in self._files:
            connection.rows("BEGIN")
            # A transaction has no snapshot until it reads.
            connection.rows("SELECT count(*) FROM sqlite_schema")

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Do nothing until the trial is over."""
        while not ended():
            time.sleep(_TICK_S)
        return []

    def close(self) -> None:
        for connection in self._files:
            connection.close()
