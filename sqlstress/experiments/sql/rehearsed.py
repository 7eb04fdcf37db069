"""Scripts whose statements are traced, by name. They don't sleep, and say themselves where a statement is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sqlstress.experiments.sql.worker import SqlSource

if TYPE_CHECKING:
    from sqlstress.experiments.sql.expressions import Variables
    from sqlstress.experiments.sql.script import Sql, Step
    from sqlstress.report.case import Case
    from sqlstress.targets.place import SqlPlace
    from sqlstress.user_work.rehearsal import Calls
    from sqlstress.user_work.tracing import Tracer


class Rehearsed(SqlSource):
    """Runs scripts, and tells a tracer of each statement before it is run."""

    def __init__(self, case: Case, place: SqlPlace, tracer: Tracer) -> None:
        self._tracer = tracer
        acknowledged = bytearray(8 * case.concurrency)
        super().__init__(case, place, 1, 0, (None, acknowledged))

    def sleep(self, seconds: float) -> None:
        """Go on at once."""

    def _around(self, sql: Sql, run: Step) -> Step:
        run, tracer, place = super()._around(sql, run), self._tracer, sql.statement.place
        at = f"{place.file}:{place.line}"

        def told(variables: Variables) -> Any:
            tracer.place = at
            return run(variables)

        return told


def open_calls(case: Case, place: SqlPlace, tracer: Tracer) -> Calls:
    """Connect, and return what runs each script."""
    source = Rehearsed(case, place, tracer)

    def run(number: int) -> None:
        (variables,) = source.prepared([number])
        source.calls[number](variables)

    return {name: partial(run, number) for number, name in enumerate(source.kinds)}
