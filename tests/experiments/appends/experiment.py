"""What the registry names: the experiment, and what a case of it says beside what all cases say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlstress.experiment import CommandLine, Experiment, Words
from sqlstress.options.option import LOAD, chosen, option, options_of
from sqlstress.options.parsing import whole
from sqlstress.plan import Request
from sqlstress.report.case import Case, common


@dataclass(frozen=True, slots=True)
class Appending:
    """What each process appends."""

    rows: int = option(whole(1, 1000), 100, LOAD, "Rows of each process, a transaction each.")


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
    options=(*common("concurrency"), *chosen(options_of(Appending)), *common("synchronous", "seed")),
    cases=cases,
    words=Words(counted="rows"),
    work=f"{__package__}.work:AppendsWork",
    worker=f"{__package__}.worker:AppendsSource",
)
