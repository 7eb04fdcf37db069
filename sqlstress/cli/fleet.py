"""sqlstress fleet: one plan on many hosts, or the reports of many hosts, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sqlstress.cli.console import complain, say
from sqlstress.cli.options import output_option
from sqlstress.cli.outputs import Output, parse_outputs, take_stdout
from sqlstress.errors import UsageError
from sqlstress.render import FLEET_FORMATS
from sqlstress.system.garbage import no_search

if TYPE_CHECKING:
    from sqlstress.analysis.fleet import LeftOut

_PEM = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog="Example: sqlstress fleet --folder reports")
@click.argument("plan", required=False, type=click.Path(path_type=Path), metavar="[PLAN.toml]")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The reports, a JSON file for each host, in folders below it too. With --scheduler they are saved "
    "there: it must be empty, or is made; if none is given, it is called as the plan, with -fleet.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="The scheduler of a Dask cluster, on whose hosts the plan is measured: tls://HOST:PORT, or tcp:// "
    "on this machine.",
)
@click.option(
    "--tls-ca", type=_PEM, metavar="FILE", help="The authority that signed the cluster's certificates (PEM)."
)
@click.option("--tls-cert", type=_PEM, metavar="FILE", help="Our own certificate (PEM).")
@click.option("--tls-key", type=_PEM, metavar="FILE", help="The key of that certificate (PEM).")
@click.option(
    "--dir",
    "directory",
    default=".",
    metavar="FOLDER",
    help="Where the databases go on each host; relative: to its worker's folder.  [default: .]",
)
@click.option(
    "--limit",
    default="1h",
    metavar="TIME",
    help="How long a host may take; it is stopped then, and the others go on.  [default: 1h]",
)
@click.option(
    "--hosts",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Wait for so many hosts, for --limit at most.",
)
@click.option(
    "--together",
    is_flag=True,
    help="All hosts load the one server that the plan names (driver psycopg, --dsn), from a common start: "
    "with a total over all hosts.",
)
@output_option("Save what the fleet shows", tuple(FLEET_FORMATS))
@no_search()
def fleet(
    plan: Path | None,
    folder: Path | None,
    scheduler: str | None,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    directory: str,
    limit: str,
    hosts: int | None,
    together: bool,
    outputs: tuple[str, ...],
) -> int:
    """Show the reports of many hosts side by side: best, median and worst, and who is unlike the others.

    With a plan and --scheduler the plan is measured first on every host of a Dask cluster, one at a time on
    each machine; each report is saved as soon as it is there. Needs no SQLite without that.
    """
    if (plan is None) != (scheduler is None):
        raise UsageError("a plan is measured with --scheduler ADDRESS; reports are shown by --folder alone.")
    if folder is None:
        if plan is None:
            raise UsageError("which reports? Name their folder: sqlstress fleet --folder reports.")
        folder = Path(f"{plan.stem}-fleet")
    written = parse_outputs(outputs, FLEET_FORMATS)
    left_out: Sequence[LeftOut] = ()
    remarks: Sequence[str] = ()
    if plan is not None and scheduler is not None:
        from sqlstress.cluster.address import Cluster
        from sqlstress.cluster.asked import Asked
        from sqlstress.cluster.measured import measure_fleet

        cluster = Cluster.of(scheduler, tls_ca, tls_cert, tls_key)
        asked = Asked.of(plan, folder, directory, limit, hosts, together)
        measured = measure_fleet(cluster, asked, complain)
        left_out, remarks = measured.left_out, measured.remarks
    elif tls_ca or tls_cert or tls_key:
        raise UsageError("--tls-ca, --tls-cert and --tls-key are for --scheduler.")
    elif together:
        raise UsageError("--together is for a plan that is measured: add PLAN.toml and --scheduler.")
    return _show(folder, written, left_out, remarks)


def _show(
    folder: Path, written: Sequence[Output], left_out: Sequence[LeftOut], remarks: Sequence[str]
) -> int:
    from sqlstress.cli.fleet_folder import ending, read_folder
    from sqlstress.render.fleet import fleet_text

    found = read_folder(folder, left_out, remarks)
    if not take_stdout(written):
        say(fleet_text(found), end="")
    for output in written:
        output.write(FLEET_FORMATS[output.format](found))
    return ending(found)
