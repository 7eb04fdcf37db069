"""The commands that measure: each experiment as its face says, and a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqlstress.cli.common_options import (
    GroupedCommand,
    result_options,
    run_experiment,
    run_options,
    run_plan,
    slice_options,
    typed,
    with_options,
)
from sqlstress.cli.group import given_in
from sqlstress.errors import UsageError
from sqlstress.experiment import commands
from sqlstress.plan import options_of_command
from sqlstress.system.importing import named

if TYPE_CHECKING:
    from sqlstress.show.blocks import Block


# The commands that measure the cases of other experiments, or only show something.


def run_study(
    asks: str,
    directory: Path,
    outputs: tuple[str, ...],
    github: bool,
    quiet: bool,
    no_progress: bool,
    **given: Any,
) -> int:
    """Do what the options of such an experiment ask for; return the exit code."""
    # Imported when there is something to measure: what is wrong is told at once.
    from sqlstress.engine.study import StudyRequest

    found: StudyRequest | tuple[Block, ...] = named(asks)(typed(given), given_in)
    if not isinstance(found, StudyRequest):
        return _shown(found, outputs)
    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.outputs import Saver
    from sqlstress.engine.session import Session

    saver = Saver.of(outputs, github, quiet)
    session = Session(found.cases, directory, False, command_line())
    progress = not (quiet or no_progress)
    return measure(found.study, session, saver, strict=found.strict, progress=progress)


def _shown(blocks: Sequence[Block], outputs: Sequence[str]) -> int:
    """Print what is shown without a measurement."""
    from sqlstress.cli.outputs import say
    from sqlstress.show.text import drawn

    if outputs:
        raise UsageError("-o is for what is measured, and this measures nothing: leave it out.")
    say("\n\n".join(map(drawn, blocks)))
    return 0


def command(name: str) -> click.Command:
    """Return the command of a name, with the options of every experiment that it can measure."""
    experiment = commands()[name]
    asks = experiment.study.asks if experiment.study else ""
    running = slice_options if asks else result_options if experiment.study else run_options

    @with_options(options_of_command(name))
    @click.command(
        name,
        cls=GroupedCommand,
        help=experiment.command.help,
        epilog=f"Example: {experiment.command.example}",
    )
    @running
    def measure(**given: Any) -> int:
        return run_study(asks, **given) if asks else run_experiment(name, given)

    return measure


@click.command(epilog="Example: sqlstress run examples/durability.toml -o report.json")
@click.argument("plan", type=click.Path(path_type=Path))
@run_options
def measure_plan(plan: Path, **running: Any) -> int:
    """Measure the cases of a plan: a TOML file with a [[case]] for each, in the options' names.

    Every case names its workload; options at the top of the file are defaults for all cases.
    """
    from sqlstress.plan import Planned, from_toml

    return run_plan(Planned(from_toml(plan)), **running)
