"""A writer: a worker's half that goes on until it is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.engine.protocols import Findings
from sqlstress.experiments.crash.records import Records, transactions, writing
from sqlstress.targets.sqlite.connecting import connect, waiting_of
from sqlstress.targets.sqlite.drivers import Connection, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.partition import file_names

if TYPE_CHECKING:
    from sqlstress.report.case import Case


class CrashSource(OrderedSource):
    """Opens the files when it is told to begin, not before: whoever comes first recovers them."""

    kinds = ("transaction",)

    def __init__(self, case: Case, folder: Path, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        """`salt` is the number of writers that the database has had before."""
        (words,) = shared
        super().__init__(
            words, worker, waiting_of(case, worker), self._open_and_write(case, folder, worker + salt)
        )
        self._case, self._connections = case, list[Connection]()

    def _open_and_write(self, case: Case, folder: Path, writer: int) -> Iterator[Step]:
        names, driver = file_names(case.buckets), load_driver(case.driver)
        self._connections += [connect(case, folder / name, self._waiting) for name in names]
        writes = [
            self._waiting.retried(writing(one, case.spec.begin), driver.result_code, one.rollback)
            for one in self._connections
        ]
        records = Records(case)
        for entry in transactions(case, records, writer):
            write, rows = writes[records.file(entry.record)], records.rows(entry)
            yield Step(0, write, (rows, entry), records.width)

    def findings(self) -> Findings:
        self.seen.effective = pragmas.read_back(self._connections[0], self._case.settings)
        return self.seen

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
