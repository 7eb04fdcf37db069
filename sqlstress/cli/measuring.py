"""The commands that measure an experiment, made of what its face says."""

from __future__ import annotations

from typing import Any

import click

from sqlstress.cli.options import (
    GroupedCommand,
    result_options,
    run_experiment,
    run_options,
    with_options,
)
from sqlstress.experiment import commands
from sqlstress.plan import options_of_command


def command(name: str) -> click.Command:
    """Return the command of a name, with the options of every experiment that it can measure."""
    experiment = commands()[name]

    @with_options(options_of_command(name))
    @click.command(name, cls=GroupedCommand, help=experiment.help, epilog=f"Example: {experiment.example}")
    @(result_options if experiment.result else run_options)
    def measure(**given: Any) -> int:
        return run_experiment(name, given)

    return measure
