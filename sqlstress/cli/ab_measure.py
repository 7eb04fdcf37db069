"""Carrying out an A/B test: measure, save after every slice, show, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from sqlstress.analysis.ab_wording import conclusion
from sqlstress.cli.ab_progress import watcher
from sqlstress.cli.console import complain
from sqlstress.cli.outputs import Saver
from sqlstress.errors import Interrupted
from sqlstress.report import AbTest, Report
from sqlstress.report.case import Case
from sqlstress.statistics.gate import FAIL, INCONCLUSIVE, LOOKS
from sqlstress.studies.ab import AbStudy
from sqlstress.studies.slices import Bench

FINE, REGRESSION, UNSURE, FAILURE = 0, 1, 3, 4


def measure(
    test: AbTest,
    cases: tuple[Sequence[Case], Sequence[Case]],
    bench: AbstractContextManager[Bench],
    saver: Saver,
    *,
    strict: bool,
    progress: bool,
) -> int:
    """Measure an A/B test; return the exit code."""
    with saver.told_when_stopped():
        with watcher(progress) as watch, bench as opened:

            def tell(report: Report) -> None:
                saver.after_case(report)
                watch(report)

            report = AbStudy(opened, cases, test, tell, LOOKS).measure()
        saver.at_end(report)
    code = _exit_code(report, saver.kept(), strict)
    if saver.problem:
        complain(f"Error: {saver.problem}")
    return code or (FAILURE if saver.problem else FINE)


def _exit_code(report: Report, kept: str, strict: bool) -> int:
    """Say what went wrong in a line; return the exit code."""
    assert report.ab
    failed = next((run for run in report.runs if run.error), None)
    if report.interrupted:
        complain(f"Stopped after {sum(len(run.trials) for run in report.runs)} slices{kept}.")
        return Interrupted.exit_code
    if report.ab.verdict == FAIL:
        complain(f"Error: {conclusion(report, report.ab)}")
        return REGRESSION
    if failed:
        reason = (failed.error or "").removesuffix(".")
        complain(f"Error: {failed.arm}, {failed.case.label}, could not be measured: {reason}.")
        return FAILURE
    return UNSURE if strict and report.ab.verdict == INCONCLUSIVE else FINE
