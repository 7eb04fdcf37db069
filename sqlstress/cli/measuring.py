"""The commands that measure: each experiment as its face says, and a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sqlstress.cli.asked import run_asked
from sqlstress.cli.options import (
    GroupedCommand,
    result_options,
    run_experiment,
    run_options,
    run_plan,
    slice_options,
    with_options,
)
from sqlstress.experiment import commands
from sqlstress.plan import options_of_command


def command(name: str) -> click.Command:
    """Return the command of a name, with the options of every experiment that it can measure."""
    experiment = commands()[name]
    running = slice_options if experiment.asks else result_options if experiment.result else run_options

    @with_options(options_of_command(name))
    @click.command(name, cls=GroupedCommand, help=experiment.help, epilog=f"Example: {experiment.example}")
    @running
    def measure(**given: Any) -> int:
        return run_asked(experiment, **given) if experiment.asks else run_experiment(name, given)

    return measure


@click.command(epilog="Example: sqlstress run examples/durability.toml -o report.json")
@click.argument("plan", type=click.Path(path_type=Path))
@run_options
def run(plan: Path, **running: Any) -> int:
    """Measure the cases of a plan: a TOML file with a [[case]] for each, in the options' names.

    Every case names its workload; options at the top of the file are defaults for all cases.
    """
    from sqlstress.plan import Planned, from_toml

    return run_plan(Planned(from_toml(plan)), **running)
