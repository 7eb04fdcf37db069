"""Carrying out a crash test: measure, save every few rounds, show, and the exit code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import click

from sqlstress.analysis.finding import UNPROVED, WRONG
from sqlstress.analysis.part import parts, progress
from sqlstress.cli.console import complain
from sqlstress.cli.crash_progress import watcher
from sqlstress.cli.outputs import Saver
from sqlstress.engine.observer import Nobody
from sqlstress.engine.session import Session
from sqlstress.errors import Interrupted
from sqlstress.experiments.crash.result import Kills
from sqlstress.experiments.crash.study import KillStudy
from sqlstress.report import Report
from sqlstress.report.case import Case

FINE, INTEGRITY, UNSURE, FAILURE = 0, 1, 3, 4
SAVE_EVERY_S = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be done."""

    case: Case
    rounds: int
    directory: Path
    keep: bool


def measure(asked: Asked, saver: Saver, *, progress: bool) -> int:
    """Carry out a crash test; return the exit code."""
    arguments = click.get_current_context().obj or ()
    session = Session((asked.case,), asked.directory, asked.keep, ("sqlstress", *arguments))
    with saver.told_when_stopped():
        with watcher(progress) as watch, session.opened(Nobody()) as (empty, runner):

            def save(kills: Kills) -> None:
                saver.after_case(_with(empty, kills))

            keep_saved = every(SAVE_EVERY_S, save)

            def tell(kills: Kills) -> None:
                keep_saved(kills)
                watch(kills)

            study = KillStudy(Kills(asked.case, asked.rounds), runner, tell)
            interrupted = study.run()
        report = replace(_with(empty, study.kills), interrupted=interrupted)
        saver.after_case(report)
        saver.at_end(report, session.kept_folder)
    return conclude(report, saver)


def conclude(report: Report, saver: Saver) -> int:
    """Say what was found, when it is saved and shown; return the exit code."""
    code = _exit_code(report, saver.saved())
    if saver.problem:
        complain(f"Error: {saver.problem}")
    return code or (FAILURE if saver.problem else FINE)


def _with(report: Report, kills: Kills) -> Report:
    return replace(report, planned=0, results={"crash": kills})


def every(
    seconds: float, act: Callable[[T], None], clock: Callable[[], float] = time.monotonic
) -> Callable[[T], None]:
    """Return a function that does the same as `act`, but no more often than this."""
    last = [clock() - seconds]

    def act_at_times(found: T) -> None:
        if clock() - last[0] >= seconds:
            act(found)
            last[0] = clock()

    return act_at_times


def _exit_code(report: Report, saved: list[str]) -> int:
    """Say what went wrong, a line each; return the exit code of the first of them."""
    return next(iter([*_interruption(report, saved), *_wrong(report), *_failures(report)]), FINE)


def _interruption(report: Report, saved: list[str]) -> Iterator[int]:
    if report.interrupted:
        kept = f"; what was proved is in {', '.join(saved)}" if saved else ""
        complain(f"Stopped after {progress(report)}{kept}.")
        yield Interrupted.exit_code


def _wrong(report: Report) -> Iterator[int]:
    for part in parts(report):
        if part.verdict.code == WRONG:
            complain(f"Error: {part.verdict.text}")
            yield INTEGRITY


def _failures(report: Report) -> Iterator[int]:
    for part in parts(report):
        if part.error:
            complain(f"Error: {part.name} was not tried to its end: {part.error}")
            yield FAILURE
        if part.verdict.code == UNPROVED:
            yield UNSURE
