"""A writer: a worker's half that goes on until it is killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.engine.protocols import Findings
from sqlstress.experiments.crash.records import Records, transactions, writing

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


class CrashSource(OrderedSource):
    """Opens the files when it is told to begin, not before: whoever comes first recovers them."""

    kinds = ("transaction",)

    def __init__(
        self, case: Case, place: SqlitePlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        """`salt` is the number of writers that the database has had before."""
        (words,) = shared
        self._client = place.client(worker)
        super().__init__(words, worker, self._client, self._open_and_write(case, worker + salt))

    def _open_and_write(self, case: Case, writer: int) -> Iterator[Step]:
        connections = self._client.connect_all()
        writes = [self._client.retried(writing(one, case.spec.begin), one.rollback) for one in connections]
        records = Records(case)
        for entry in transactions(case, records, writer):
            write, rows = writes[records.file(entry.record)], records.rows(entry)
            yield Step(0, write, (rows, entry), records.width)

    def findings(self) -> Findings:
        self.seen.effective = self._client.effective()
        return self.seen

    def close(self) -> None:
        self._client.close()
