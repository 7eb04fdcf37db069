"""Experiment of the registry, and the options of its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlstress.experiment import CommandLine, Experiment
from sqlstress.options.option import LOAD, NoOptions, option, options_of, select_options
from sqlstress.options.parsing import whole_number
from sqlstress.report.case import Case, common
from sqlstress.request import Request

if TYPE_CHECKING:
    from sqlstress.show.shown import Presenter
    from tests.experiments.appends.work import AppendsWork
    from tests.experiments.appends.worker import AppendsSource


@dataclass(frozen=True, slots=True)
class Appending:
    """Options of a case of appends."""

    rows: int = option(whole_number(1, 1000), 100, LOAD, "Rows of each process, a transaction each.")


class AppendsExperiment(Experiment):
    """Processes that append rows to one table."""

    name = "appends"
    spec = Appending
    key = "appending"
    command = CommandLine(
        name="appends",
        summary="Rows appended by N processes.",
        help="Measure N processes that append rows to one table.",
        example="sqlstress appends --rows 50",
    )
    options = (*common("concurrency"), *select_options(options_of(Appending)), *common("synchronous", "seed"))

    def cases(self, request: Request[Appending, NoOptions]) -> Iterator[Case]:
        for concurrency in request.values_for("concurrency"):
            yield replace(request.case, concurrency=concurrency)

    def rate_units(self, case: Case) -> str:
        return "rows"

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> AppendsWork:
        from tests.experiments.appends.work import AppendsWork

        return AppendsWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., AppendsSource]:
        from tests.experiments.appends.worker import AppendsSource

        return AppendsSource

    def presenter(self) -> Presenter:
        from sqlstress.show.shown import Presenter

        return Presenter()
