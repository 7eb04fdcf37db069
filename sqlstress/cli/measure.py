"""What `kv` and `run` have in common: measure, save after every case, show, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sqlstress.cli.console import complain
from sqlstress.cli.outputs import Saver
from sqlstress.cli.progress import watcher
from sqlstress.engine.session import Session
from sqlstress.errors import Interrupted
from sqlstress.report import Report, Run
from sqlstress.report.case import Case

FINE, INTEGRITY, FAILURE = 0, 1, 4


def measure(cases: tuple[Case, ...], directory: Path, keep: bool, saver: Saver, *, progress: bool) -> int:
    """Measure the cases; return the exit code."""
    arguments = click.get_current_context().obj or ()
    session = Session(cases, directory, keep, ("sqlstress", *arguments))
    with saver.told_when_stopped():
        with watcher(cases, progress and sys.stderr.isatty()) as observer:
            report = session.measure(saver.after_case, observer)
        saver.at_end(report, session.kept_folder)
    code = _exit_code(report, saver.kept())
    if saver.problem:
        complain(f"Error: {saver.problem}")
    return code or (FAILURE if saver.problem else FINE)


def _exit_code(report: Report, kept: str) -> int:
    """Say what went wrong, a line each; return the exit code of the first of them."""
    codes = [
        *_interruption(report, kept),
        *_integrity(report),
        *_failures([run for run in report.runs if run.error]),
        FINE,
    ]
    return codes[0]


def _interruption(report: Report, kept: str) -> Iterator[int]:
    if report.interrupted:
        complain(f"Stopped after {len(report.runs)} of {report.planned} cases{kept}.")
        yield Interrupted.exit_code


def _integrity(report: Report) -> Iterator[int]:
    for run in report.runs:
        if run.verdict.status == "failed":
            example = next(iter(run.verdict.counterexamples), "see the report")
            complain(f"Error: the data is not what the workers were told it is: {example}.")
            yield INTEGRITY
            return


def _failures(failed: Sequence[Run]) -> Iterator[int]:
    if failed:
        more = len(failed) - 1
        reason = (failed[0].error or "").removesuffix(".")
        others = f" (and {more} {'case' if more == 1 else 'cases'} more)" if more else ""
        complain(f"Error: {failed[0].case.label} could not be measured: {reason}{others}.")
        yield FAILURE
