"""Command `sqlstress fleet`: measures a plan (a file with cases) on each host of a Dask cluster."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstress.cli.common_options import GroupedCommand
from sqlstress.cli.outputs import print_error, print_text
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.statistics.units import plural


@click.command(
    cls=GroupedCommand,
    epilog="Example: sqlstress fleet plan.toml --scheduler tcp://127.0.0.1:8786 --folder reports",
)
@click.argument("plan", type=click.Path(path_type=Path), metavar="PLAN.toml")
@click.option(
    "--scheduler",
    required=True,
    metavar="ADDRESS",
    help="Dask scheduler: tls://HOST:PORT, or tcp://127.0.0.1:PORT on this machine.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="New or empty folder for a report of each host. Default: the plan's name with -fleet.",
)
@click.option(
    "--dir",
    "directory",
    default=".",
    metavar="FOLDER",
    help="Folder for the databases on each host, relative to the worker's.  [default: .]",
)
def fleet(plan: Path, scheduler: str, folder: Path | None, directory: str) -> int:
    """Measure a plan once on each host of a Dask cluster, and save each report when it arrives.

    Each machine runs one measurement at a time. To see the reports side by side: sqlstress compare FOLDER.
    """
    try:
        from sqlstress.cluster.fleet import connected, measure_fleet, order_of
    except ModuleNotFoundError as error:
        raise EnvironmentFailure(f"{error}. Install Dask: python -m pip install '.[fleet]'") from error
    order = order_of(plan, directory)
    folder = folder or Path(f"{plan.stem}-fleet")
    if any(folder.glob("*")):
        raise UsageError(f"--folder {str(folder)!r:.200} is not empty. Give a new folder.")
    with connected(scheduler) as client:
        code, saved = measure_fleet(client, order, folder, print_error)
    print_text(f"{plural(saved, 'report')} saved in {folder}.")
    return code
