"""Carrying out a test of power cuts: measure, save now and then, show, and the exit code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from sqlstress.cli.crash_measure import SAVE_EVERY_S, conclude, every
from sqlstress.cli.crash_progress import power_watcher
from sqlstress.cli.outputs import Saver
from sqlstress.engine.observer import Nobody
from sqlstress.engine.session import Session
from sqlstress.experiments.power_loss.result import PowerLoss
from sqlstress.experiments.power_loss.study import PowerStudy
from sqlstress.report import Report
from sqlstress.report.case import Case
from sqlstress.targets.sqlite.drivers import load_vfs


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be done."""

    cases: tuple[Case, ...]
    loss: PowerLoss
    directory: Path
    keep: bool


def measure(asked: Asked, saver: Saver, *, progress: bool) -> int:
    """Carry out a test of power cuts; return the exit code."""
    load_vfs("recording")
    arguments = click.get_current_context().obj or ()
    session = Session(asked.cases, asked.directory, asked.keep, ("sqlstress", *arguments))
    with saver.told_when_stopped():
        with power_watcher(progress) as watch, session.opened(Nobody()) as (empty, runner):

            def save(loss: PowerLoss) -> None:
                saver.after_case(_with(empty, loss))

            keep_saved = every(SAVE_EVERY_S, save)

            def tell(loss: PowerLoss) -> None:
                keep_saved(loss)
                watch(loss)

            check = runner.signals.check
            study = PowerStudy(asked.loss, asked.cases, runner.folder, check, tell, keep=asked.keep)
            interrupted = study.run()
        report = replace(_with(empty, study.loss), interrupted=interrupted)
        saver.after_case(report)
        saver.at_end(report, session.kept_folder)
    return conclude(report, saver)


def _with(report: Report, loss: PowerLoss) -> Report:
    return replace(report, planned=0, results={"power-loss": loss})
