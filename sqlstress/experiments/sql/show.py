"""Presentation of SQL scripts: tables, with names and weights of scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from sqlstress.analysis.group import Group, Topic
from sqlstress.analysis.wording import listing
from sqlstress.experiment import experiment_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show.blocks import Block, Value
from sqlstress.statistics.units import digits
from sqlstress.user_work.call_findings import wal_growth_findings
from sqlstress.user_work.failures_view import failure_blocks, failure_findings
from sqlstress.user_work.show import UserPresenter
from sqlstress.user_work.suspicions_view import lone_step_findings, suspicion_findings


class SqlShown(UserPresenter):
    """Presenter (tables, sentences) of SQL scripts."""

    topics: ClassVar[tuple[Topic, ...]] = (
        failure_findings,
        wal_growth_findings,
        suspicion_findings,
        lone_step_findings,
        *UserPresenter.topics,
    )

    def more_blocks(self, group: Group) -> Iterator[Block]:
        yield from super().more_blocks(group)
        yield from failure_blocks(group)

    def work(self, case: Case) -> str:
        spec = case.spec
        # `or 1` prevents a division by zero. All weights are 0 only in a report written by hand.
        total = sum(script.weight for script in spec.scripts) or 1
        shares = [f"{100 * script.weight / total:.3g}% {script.name}" for script in spec.scripts]
        scripts = spec.scripts[0].name if len(spec.scripts) == 1 else listing(shares)
        tries = f", each tried up to {digits(spec.max_tries)} times" if spec.max_tries > 1 else ""
        scale = f", scale {spec.scale}" if spec.builtin_setup or spec.scale > 1 else ""
        return f"{scripts}{scale}{tries}"

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        def column(figure: Callable[[Case], Value]) -> Callable[[Run], Value]:
            return lambda run: figure(run.case) if run.case.workload == "sql" else None

        return {
            "scripts": column(lambda case: experiment_of(case).work_label(case)),
            "scale": column(lambda case: case.spec.scale),
            "max_tries": column(lambda case: case.spec.max_tries),
            "ledger": column(lambda case: int(case.spec.ledger)),
            **super().case_columns(runs),
        }
