"""What all commands that measure have in common: carry a study out, save and show it, and the exit code."""

from __future__ import annotations

import sys

import click

from sqlstress.analysis.ending import FAILURE, FINE, endings, exit_code
from sqlstress.cli.console import complain
from sqlstress.cli.outputs import Saver
from sqlstress.cli.progress import watcher
from sqlstress.engine.study import B, Opening, Study
from sqlstress.studies.carry_out import carry_out


def command_line() -> tuple[str, ...]:
    """Return the words of the command that is carried out."""
    return ("sqlstress", *(click.get_current_context().obj or ()))


def measure(
    study: Study[B], opening: Opening[B], saver: Saver, *, progress: bool, strict: bool = False
) -> int:
    """Carry a study out, and say what is not as it should be; return the exit code."""
    with saver.told_when_stopped():
        with watcher(progress and sys.stderr.isatty()) as observer:
            report = carry_out(study, opening, saver.after_step, observer)
        saver.at_end(report, opening.kept_folder)
    found = endings(report, strict=strict, saved=saver.saved())
    for ending in found:
        if ending.text:
            complain(ending.text)
    if saver.problem:
        complain(f"Error: {saver.problem}")
    return exit_code(found) or (FAILURE if saver.problem else FINE)
