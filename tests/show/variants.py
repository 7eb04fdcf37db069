"""Reports that differ from the example in a few facts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from sqlstress.report import Environment, FileSystem, Host, Report, Run, Trial
from tests.example_report import corpus_report, example_report, failed_report

EXAMPLE = example_report()
UNKNOWN = Environment(
    Host("Darwin", "", "", "", None, None, "", None), FileSystem("", "", ""), builds=(), sync=None
)
"""An environment of which only the system is known."""
TRIAL = EXAMPLE.runs[0].trials[0]


def each_run(change: Callable[[Run], Run], report: Report = EXAMPLE) -> Report:
    """Return the report with every run changed."""
    return replace(report, runs=tuple(map(change, report.runs)))


def each_trial(change: Callable[[Trial], Trial], report: Report = EXAMPLE) -> Report:
    """Return the report with every trial changed."""
    return each_run(lambda run: replace(run, trials=tuple(map(change, run.trials))), report)


def with_case(report: Report = EXAMPLE, **fields: Any) -> Report:
    """Return the report with fields of every case changed."""
    return each_run(lambda run: replace(run, case=replace(run.case, **fields)), report)


def with_one(run: Run) -> Report:
    """Return the report with its first run replaced."""
    return replace(EXAMPLE, runs=(run, *EXAMPLE.runs[1:]))


classic_report = partial(corpus_report, "classic")
"""A sweep of the published script: a fixed number of pairs, without the cost of the harness."""
troubled_report = partial(corpus_report, "troubled")
"""An interrupted sweep: a case without trials, an undecided case and a partly proved case."""
update_report = partial(corpus_report, "updates")
"""Three trials per case, with batches and deferred updates: the widest table."""
beside_report = partial(corpus_report, "beside")
"""PASSIVE checkpoints during the load, held up by a reader in the second half."""
VARIANTS: dict[str, Callable[[], Report]] = {
    "report": example_report,
    "failed": failed_report,
    "passes": partial(corpus_report, "passes"),
    "classic": classic_report,
    "troubled": troubled_report,
    "updates": update_report,
    "beside": beside_report,
    "widest": partial(corpus_report, "widest"),
}
"""The reports of kv by name.

"passes" has five passes, noisy at 8 processes, where other programs took a core. "widest" has the
largest figures that the table must hold.
"""
