"""sqlstress fleet: one plan on many hosts."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstress.analysis.differences import LETTERS
from sqlstress.cli.common_options import GroupedCommand
from sqlstress.cli.outputs import complain, say
from sqlstress.errors import EnvironmentFailure
from sqlstress.statistics.units import plural

_PEM = click.Path(dir_okay=False, path_type=Path)


@click.command(
    cls=GroupedCommand,
    main=("scheduler", "tls-ca", "tls-cert", "tls-key", "folder", "hosts", "limit"),
    epilog="Example: sqlstress fleet plan.toml --scheduler tcp://127.0.0.1:8786 --folder reports",
)
@click.argument("plan", type=click.Path(path_type=Path), metavar="PLAN.toml")
@click.option(
    "--scheduler",
    required=True,
    metavar="ADDRESS",
    help="Dask scheduler of the cluster: tls://HOST:PORT, or tcp://HOST:PORT on this machine.",
)
@click.option("--tls-ca", type=_PEM, metavar="FILE", help="CA certificate of the cluster (PEM).")
@click.option("--tls-cert", type=_PEM, metavar="FILE", help="Client certificate (PEM).")
@click.option("--tls-key", type=_PEM, metavar="FILE", help="Key of the client certificate (PEM).")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="New or empty folder for the reports, a JSON file for each host. Default: the plan's name with "
    "-fleet.",
)
@click.option(
    "--dir",
    "directory",
    default=".",
    metavar="FOLDER",
    help="Folder for the databases on each host. A relative path starts at the worker's folder.  "
    "[default: .]",
)
@click.option(
    "--limit",
    default="1h",
    metavar="TIME",
    help="Time limit of a host. After it the host is stopped, and the others continue.  [default: 1h]",
)
@click.option(
    "--hosts",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Wait for this many hosts, but no longer than --limit.",
)
def fleet(
    plan: Path,
    scheduler: str,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    folder: Path | None,
    directory: str,
    limit: str,
    hosts: int | None,
) -> int:
    """Measure a plan once on each host of a Dask cluster, and save each report when it arrives.

    Each machine runs one measurement at a time. To see the reports side by side: sqlstress compare FOLDER.
    """
    try:
        from sqlstress.cluster.fleet import FleetRequest, measure_fleet, security_of
    except ModuleNotFoundError as error:
        remedy = "Install it: python -m pip install '.[fleet]'"
        raise EnvironmentFailure(f"a fleet needs Dask ({error}). {remedy}") from error
    security = security_of(scheduler, tls_ca, tls_cert, tls_key)
    request = FleetRequest.of(plan, folder or Path(f"{plan.stem}-fleet"), directory, limit, hosts)
    code, saved = measure_fleet(scheduler, security, request, complain)
    hint = f" To see them side by side: sqlstress compare {request.folder}"
    say(f"{plural(saved, 'report')} saved in {request.folder}.{hint if 1 < saved <= len(LETTERS) else ''}")
    return code
