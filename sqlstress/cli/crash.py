"""sqlstress crash: what is left of acknowledged transactions when writers die, or the power is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sqlstress.cli.options import GroupedCommand, crash_options, typed, with_options
from sqlstress.plan import asked_for, options_of_command


@with_options(options_of_command("crash"))
@click.command(cls=GroupedCommand, epilog="Example: sqlstress crash --rounds 100 --concurrency 3")
@crash_options
def crash(
    directory: Path,
    keep: bool,
    outputs: tuple[str, ...],
    github: bool,
    quiet: bool,
    no_progress: bool,
    **given: Any,
) -> int:
    """Kill writing processes at random moments, reopen the files, and prove what they hold.

    Or cut the power of a recorded run: --power, --matrix. Exits 1 when an acknowledged transaction is
    gone, one is torn, or a file is damaged.
    """
    experiment, asked = asked_for(typed(given), "crash")
    cases = tuple(experiment.cases(asked))

    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.outputs import Saver
    from sqlstress.engine.session import Session
    from sqlstress.render import DOCUMENTS

    saver = Saver.of(outputs, github, quiet, DOCUMENTS)
    study = experiment.open_study(cases, asked.extra)
    session = Session(cases, directory, keep, command_line())
    return measure(study, session, saver, progress=not (quiet or no_progress))
