"""sqlstress crash: what is left of acknowledged transactions when writers die, or the power is cut."""

from __future__ import annotations

import sys
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

    from sqlstress.cli.outputs import Saver
    from sqlstress.render import DOCUMENTS
    from sqlstress.report import PowerLoss

    saver = Saver.of(outputs, github, quiet, DOCUMENTS)
    progress = not (quiet or no_progress) and sys.stderr.isatty()
    if experiment.name == "power-loss":
        from sqlstress.cli import crash_power

        extra = asked.extra
        loss = PowerLoss(extra.images, len(cases), extra.matrix, extra.disk == "spoiling", extra.psow)
        power = crash_power.Asked(cases, loss, directory, keep)
        return crash_power.measure(power, saver, progress=progress)

    from sqlstress.cli import crash_measure

    kills = crash_measure.Asked(cases[0], asked.extra.rounds, directory, keep)
    return crash_measure.measure(kills, saver, progress=progress)
