"""sqlstress fleet: one plan on many hosts, or the reports of many hosts, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sqlstress.analysis.fleet import Fleet, LeftOut, gathered
from sqlstress.analysis.fleet_hosts import Host, host_of
from sqlstress.cli.commands import short_names
from sqlstress.cli.common_options import GroupedCommand, details_option, output_option
from sqlstress.cli.outputs import complain, parse_outputs, say_page, take_stdout
from sqlstress.errors import UsageError
from sqlstress.report import read
from sqlstress.report.document import no_search
from sqlstress.show.blocks import shortened
from sqlstress.show.formats import FLEET_FORMATS

_PEM = click.Path(dir_okay=False, path_type=Path)


@click.command(
    cls=GroupedCommand,
    main=("folder", "scheduler", "hosts", "together", "limit", "output"),
    epilog="Example: sqlstress fleet --folder reports",
)
@click.argument("plan", required=False, type=click.Path(path_type=Path), metavar="[PLAN.toml]")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder of the reports, a JSON file for each host; subfolders are read too. With --scheduler, "
    "reports are saved there, and the folder must be new or empty. Default: the plan's name with -fleet.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Dask scheduler of the cluster that measures the plan: tls://HOST:PORT, or tcp://HOST:PORT on this "
    "machine.",
)
@click.option("--tls-ca", type=_PEM, metavar="FILE", help="CA certificate of the cluster (PEM).")
@click.option("--tls-cert", type=_PEM, metavar="FILE", help="Client certificate (PEM).")
@click.option("--tls-key", type=_PEM, metavar="FILE", help="Key of the client certificate (PEM).")
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
@click.option(
    "--together",
    is_flag=True,
    help="Let all hosts load the same server (driver psycopg, --dsn) at the same time, and show the total.",
)
@output_option("Save the result", tuple(FLEET_FORMATS))
@details_option
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
    details: bool,
) -> int:
    """Show the reports of many hosts side by side: best, median, worst, and outliers.

    With a plan and --scheduler, measure the plan first on every host of a Dask cluster. Each machine runs one
    host at a time. Each report is saved when it arrives. Without --scheduler, this needs no SQLite.
    """
    if (plan is None) != (scheduler is None):
        raise UsageError(
            "PLAN.toml needs --scheduler ADDRESS, and --scheduler needs PLAN.toml. To show reports, give "
            "--folder only."
        )
    if folder is None:
        if plan is None:
            raise UsageError("no reports given. Name their folder: sqlstress fleet --folder reports.")
        folder = Path(f"{plan.stem}-fleet")
    written = parse_outputs(outputs, FLEET_FORMATS)
    left_out: Sequence[LeftOut] = ()
    remarks: Sequence[str] = ()
    if plan is not None and scheduler is not None:
        from sqlstress.cluster.connection import Cluster
        from sqlstress.cluster.rounds import FleetRequest, measure_fleet

        cluster = Cluster.of(scheduler, tls_ca, tls_cert, tls_key)
        asked = FleetRequest.of(plan, folder, directory, limit, hosts, together)
        measured = measure_fleet(cluster, asked, complain)
        left_out, remarks = measured.left_out, measured.remarks
    elif tls_ca or tls_cert or tls_key:
        raise UsageError("--tls-ca, --tls-cert and --tls-key need --scheduler.")
    elif together:
        raise UsageError("--together needs a plan to measure: add PLAN.toml and --scheduler.")
    from sqlstress.show.text import pages

    found = read_folder(folder, left_out, remarks)
    if not take_stdout(written):
        say_page(pages(details).fleet(found))
    for output in written:
        output.write(FLEET_FORMATS[output.format](found))
    return ending(found)


# A folder of reports becomes a fleet: what is no report is named, and the others are kept.


MOST = 10_000
"""Files that are read: as many hosts as anybody has looked at here, and ten times as many."""
_OWN = '"fleet_version"'
BAD, FAILURE = 1, 4


def read_folder(folder: Path, left_out: Sequence[LeftOut], remarks: Sequence[str]) -> Fleet:
    """Return the fleet whose reports lie in a folder or below. Raises UsageError where there is none.

    One report at a time is in memory; of each the figures of its cases stay.
    """
    unread: list[LeftOut] = []
    fleet = gathered(_hosts(_files(folder), unread), (), remarks)
    everything = (*left_out, *unread)
    if fleet.hosts:
        return Fleet(fleet.hosts, fleet.tables, fleet.twice, everything, fleet.remarks)
    where = f"--folder {str(folder)!r:.200} has no report"
    if not everything:
        raise UsageError(f"{where}. Save reports there with -o NAME.json.")
    raise UsageError(f"{where} of cases: {everything[0].name}: {everything[0].why.removesuffix('.')}.")


def ending(fleet: Fleet) -> int:
    """Complain of what is not as it should be; return the exit code."""
    failures = [one for one in fleet.left_out if one.is_failure]
    wrong = [host.name for host in fleet.hosts if any(one.wrong for one in host.cases)]
    if failures:
        first, more = failures[0], len(failures) - 1
        others = f" (and {more:,} more)" if more else ""
        complain(
            shortened(f"Error: not included: {first.name}: {first.why.removesuffix('.')}{others}. ", 300)
            + f" {len(fleet.hosts):,} kept."
        )
    fewer = next((one for one in fleet.joint() if one.hosts < len(one.asked)), None)
    if fewer and not failures:
        complain(
            f"Error: a total covers {fewer.hosts} of {len(fewer.asked)} hosts only. Each report is kept."
        )
    if wrong:
        complain(shortened(f"Error: the data was wrong on {', '.join(wrong)}.", 300))
    return BAD if wrong else FAILURE if failures or fewer else 0


def _files(folder: Path) -> list[Path]:
    try:
        if not folder.is_dir():
            raise UsageError(f"--folder: no such folder: {str(folder)!r:.200}.")
        found = sorted(path for path in folder.rglob("*.json") if not path.name.startswith("."))
    except OSError as error:
        raise UsageError(
            f"cannot read the folder {str(folder)!r:.200}: {error.strerror or error}."
        ) from error
    if len(found) > MOST:
        raise UsageError(f"--folder {str(folder)!r:.200} has more than {MOST:,} JSON files. Split it.")
    return found


def _hosts(files: Sequence[Path], unread: list[LeftOut]) -> Iterator[Host]:
    for name, file in zip(short_names(files) if files else (), files, strict=True):
        try:
            report = read(file)
        except UsageError as error:
            if not _is_ours(file):
                # Without its name, which stands before it.
                unread.append(LeftOut(name, str(error).partition("': ")[2] or str(error)))
            continue
        try:
            yield host_of(name, report)
        except UsageError as error:
            unread.append(LeftOut(name, str(error), is_failure=False))


def _is_ours(file: Path) -> bool:
    """Say whether a file is what `fleet -o fleet.json` has written."""
    try:
        with file.open("rb") as stream:
            return _OWN.encode() in stream.read(200)
    except OSError:
        return False
