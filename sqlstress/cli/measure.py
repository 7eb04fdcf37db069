"""What `kv` and `run` have in common: measure, save after every case, show, and the exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sqlstress.case import Case
from sqlstress.cli.outputs import Saver, parse_output
from sqlstress.cli.progress import watcher
from sqlstress.engine.session import Session
from sqlstress.errors import Interrupted
from sqlstress.report import Report

FINE, INTEGRITY, FAILURE = 0, 1, 4


def measure(
    cases: tuple[Case, ...],
    directory: Path,
    keep: bool,
    outputs: tuple[str, ...],
    *,
    show: bool,
    progress: bool,
) -> int:
    """Measure the cases; return the exit code."""
    from sqlstress.render.text import report_text

    saver = Saver([parse_output(text) for text in outputs])
    session = Session(cases, directory, keep, ("sqlstress", *sys.argv[1:]))
    with watcher(cases, progress and sys.stderr.isatty()) as observer:
        report = session.measure(saver.after_case, observer)
    if show and report.runs:
        click.echo(report_text(report))
    saver.at_end(report)
    if session.kept_folder and show:
        click.echo(f"The databases are kept in {session.kept_folder}.")
    code = _exit_code(report, saver.saved())
    if saver.problem:
        click.echo(f"Error: {saver.problem}", err=True)
    return code or (FAILURE if saver.problem else FINE)


def _exit_code(report: Report, saved: list[str]) -> int:
    if report.interrupted:
        kept = f"; what was measured is in {', '.join(saved)}" if saved and report.runs else ""
        click.echo(f"Stopped after {len(report.runs)} of {report.planned} cases{kept}.", err=True)
        return Interrupted.exit_code
    failed = [text for run in report.runs for text in run.verdict.counterexamples]
    if any(run.verdict.status == "failed" for run in report.runs):
        click.echo(
            f"Error: the data is not what the workers were told it is: {failed[0] if failed else ''}.",
            err=True,
        )
        return INTEGRITY
    for run in report.runs:
        if run.error:
            click.echo(f"Error: a case could not be measured wholly: {run.error}.", err=True)
            return FAILURE
    return FINE
