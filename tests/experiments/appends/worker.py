"""The worker's half, which appends rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlstress.engine.ordered import OrderedSource, OrderedStep

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


class AppendsSource(OrderedSource):
    """Appends the worker's rows to the table."""

    kinds = ("append",)

    def __init__(
        self, case: Case, place: SqlitePlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        client = place.client(worker)
        append = client.connect(0).writer("INSERT INTO log VALUES (?, ?)")
        steps = (OrderedStep(0, append, (worker, row), 1) for row in range(case.spec.rows))
        super().__init__(shared[0], worker, client, steps)
