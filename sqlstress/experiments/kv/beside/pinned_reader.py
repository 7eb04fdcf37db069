"""A process that reads once and then holds its snapshots: no checkpoint gets past what it sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlstress.engine.tally import Window
from sqlstress.statistics.series import Series

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace

_TICK_S = 0.02


class PinnedReader:
    """Holds a snapshot of every file from before the load until it is dismissed."""

    def __init__(self, case: Case, place: SqlitePlace, _shared: tuple[Any, ...]) -> None:
        self._client = place.client(0)
        for connection in self._client.connect_all():
            connection.rows("BEGIN")
            # A transaction has no snapshot until it reads.
            connection.rows("SELECT count(*) FROM sqlite_schema")

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Do nothing until the trial is over."""
        while not ended():
            time.sleep(_TICK_S)
        return []

    def close(self) -> None:
        self._client.close()
