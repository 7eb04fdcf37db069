"""Its face: what the registry names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstress.experiment import CommandLine, Experiment, Words
from sqlstress.options.option import chosen, options_of
from sqlstress.plan import Request
from sqlstress.report.case import Case, common
from tests.experiments.appends.spec import Appending


def cases(asked: Request[Appending, None]) -> Iterator[Case]:
    """Yield a case for each number of processes."""
    for concurrency in asked.some("concurrency"):
        yield replace(asked.case, concurrency=concurrency)


APPENDS = Experiment(
    name="appends",
    spec=Appending,
    key="appending",
    command=CommandLine(
        name="appends",
        summary="Rows appended by N processes.",
        help="Measure N processes that append rows to one table.",
        example="sqlstress appends --rows 50",
    ),
    options=(
        *common("concurrency"),
        *chosen(options_of(Appending)),
        *common("synchronous", "seed"),
    ),
    cases=cases,
    words=Words(counted="rows"),
    work=f"{__package__}.work:AppendsWork",
    worker=f"{__package__}.worker:AppendsSource",
)
