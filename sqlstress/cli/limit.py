"""sqlstress limit: the highest rate that holds a promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sqlstress.cli.of_experiment import command, others
from sqlstress.cli.options import slice_options, typed, with_options
from sqlstress.experiment import DEFAULT
from sqlstress.studies.limit_options import limit_options

HELP = f"""Find the highest rate at which operations are done as soon as promised, none fails, and none piles
up.

A rate holds when every one of 6 windows kept the promise, and does not hold when none did. What lies
between can't be told on this machine. With {others()} behind `limit` it is your own work, with its options.
"""


def made(experiment: str) -> click.Command:
    """Return the command for an experiment."""

    @with_options(limit_options(experiment))
    @command(experiment, made, help=HELP, epilog="Example: sqlstress limit --p99 10ms --concurrency 4")
    @slice_options
    def limit(**given: Any) -> int:
        return _search(experiment, **given)

    return limit


def _search(
    experiment: str,
    directory: Path,
    outputs: tuple[str, ...],
    github: bool,
    quiet: bool,
    no_progress: bool,
    **given: Any,
) -> int:
    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.saver import Saver
    from sqlstress.engine.session import Session
    from sqlstress.studies.limit_options import search_for

    study = search_for(typed(given), experiment)
    return measure(
        study,
        Session((study.case,), directory, False, command_line()),
        Saver.of(outputs, github, quiet),
        strict=bool(given["strict"]),
        progress=not (quiet or no_progress),
    )


limit = made(DEFAULT)
