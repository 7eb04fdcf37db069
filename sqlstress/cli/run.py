"""sqlstress run: measure a plan."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstress.cli.options import run_options


@click.command(epilog="Example: sqlstress run examples/durability.toml -o report.json")
@click.argument("plan", type=click.Path(path_type=Path))
@run_options
def run(
    plan: Path, directory: Path, keep: bool, outputs: tuple[str, ...], quiet: bool, no_progress: bool
) -> int:
    """Measure the cases of a plan: a TOML file with a [[case]] for each, in the options' names.

    Every case names its workload; options at the top of the file are defaults for all cases.
    """
    from sqlstress.plan import from_toml

    cases = from_toml(plan)
    # Imported when there is something to measure: what is wrong is told at once.
    from sqlstress.cli.measure import measure

    return measure(cases, directory, keep, outputs, show=not quiet, progress=not (quiet or no_progress))
