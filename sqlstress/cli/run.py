"""sqlstress run: measure a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sqlstress.cli.options import run_options, run_plan


@click.command(epilog="Example: sqlstress run examples/durability.toml -o report.json")
@click.argument("plan", type=click.Path(path_type=Path))
@run_options
def run(plan: Path, **running: Any) -> int:
    """Measure the cases of a plan: a TOML file with a [[case]] for each, in the options' names.

    Every case names its workload; options at the top of the file are defaults for all cases.
    """
    from sqlstress.plan import Planned, from_toml

    return run_plan(Planned(from_toml(plan)), **running)
