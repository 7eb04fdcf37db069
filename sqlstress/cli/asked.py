"""The commands that measure the cases of other experiments, or only show something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.cli.options import typed
from sqlstress.cli.words import given_in
from sqlstress.errors import UsageError
from sqlstress.experiment import Experiment
from sqlstress.system.importing import named

if TYPE_CHECKING:
    from sqlstress.display.blocks import Block


def run_asked(
    experiment: Experiment,
    directory: Path,
    outputs: tuple[str, ...],
    github: bool,
    quiet: bool,
    no_progress: bool,
    **given: Any,
) -> int:
    """Do what the options of such an experiment ask for; return the exit code."""
    # Imported when there is something to measure: what is wrong is told at once.
    from sqlstress.engine.study import Asked

    found: Asked | tuple[Block, ...] = named(experiment.asks)(typed(given), given_in)
    if not isinstance(found, Asked):
        return _shown(found, outputs)
    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.saver import Saver
    from sqlstress.engine.session import Session

    saver = Saver.of(outputs, github, quiet)
    session = Session(found.cases, directory, False, command_line())
    progress = not (quiet or no_progress)
    return measure(found.study, session, saver, strict=found.strict, progress=progress)


def _shown(blocks: Sequence[Block], outputs: Sequence[str]) -> int:
    """Print what is shown without a measurement."""
    from sqlstress.cli.console import say
    from sqlstress.render.text import drawn

    if outputs:
        raise UsageError("-o is for what is measured, and this measures nothing: leave it out.")
    say("\n\n".join(map(drawn, blocks)))
    return 0
