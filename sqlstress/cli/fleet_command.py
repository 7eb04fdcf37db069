"""sqlstress fleet: one plan on many hosts, or the reports of many hosts, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sqlstress.analysis.fleet import Fleet, Host, LeftOut, gathered, host_of
from sqlstress.cli.common_options import output_option
from sqlstress.cli.group import short_names
from sqlstress.cli.outputs import Output, complain, parse_outputs, say, take_stdout
from sqlstress.errors import UsageError
from sqlstress.report import read
from sqlstress.show.blocks import shortened
from sqlstress.show.formats import FLEET_FORMATS
from sqlstress.system.importing import no_search

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
        from sqlstress.cluster.connection import Cluster
        from sqlstress.cluster.rounds import FleetRequest, measure_fleet

        cluster = Cluster.of(scheduler, tls_ca, tls_cert, tls_key)
        asked = FleetRequest.of(plan, folder, directory, limit, hosts, together)
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
    from sqlstress.show.fleet_formats import fleet_text

    found = read_folder(folder, left_out, remarks)
    if not take_stdout(written):
        say(fleet_text(found), end="")
    for output in written:
        output.write(FLEET_FORMATS[output.format](found))
    return ending(found)


# A folder of reports becomes a fleet: what is no report is named, and the others are kept.


MOST = 10_000
"""Files that are read: as many hosts as anybody has looked at here, and ten times as many."""
_OWN = '"fleet_version"'
BAD, FAILURE = 1, 4


def read_folder(folder: Path, left_out: Sequence[LeftOut] = (), remarks: Sequence[str] = ()) -> Fleet:
    """Return the fleet whose reports lie in a folder or below. Raises UsageError where there is none.

    One report at a time is in memory; of each the figures of its cases stay.
    """
    files = _files(folder)
    unread: list[LeftOut] = []
    fleet = gathered(_hosts(files, unread), (), remarks)
    everything = (*left_out, *unread)
    if not fleet.hosts:
        raise UsageError(_nothing(folder, everything))
    return Fleet(fleet.hosts, fleet.tables, fleet.twice, everything, fleet.remarks)


def ending(fleet: Fleet) -> int:
    """Complain of what is not as it should be; return the exit code."""
    failures = [one for one in fleet.left_out if one.is_failure]
    wrong = [host.name for host in fleet.hosts if any(one.wrong for one in host.cases)]
    if failures:
        first, more = failures[0], len(failures) - 1
        others = f" (and {more:,} more)" if more else ""
        complain(
            shortened(f"Error: left out: {first.name}: {first.why.removesuffix('.')}{others}. ", 300)
            + f" {len(fleet.hosts):,} kept."
        )
    fewer = next((one for one in fleet.joint() if one.hosts < len(one.asked)), None)
    if fewer and not failures:
        complain(f"Error: a total is of {fewer.hosts} of {len(fewer.asked)} hosts. Each report is kept.")
    if wrong:
        complain(shortened(f"Error: the data was wrong on {', '.join(wrong)}.", 300))
    return BAD if wrong else FAILURE if failures or fewer else 0


def _files(folder: Path) -> list[Path]:
    try:
        if not folder.is_dir():
            raise UsageError(f"--folder {str(folder)!r:.200}: there is no such folder.")
        found = sorted(path for path in folder.rglob("*.json") if not path.name.startswith("."))
    except OSError as error:
        raise UsageError(
            f"cannot read the folder {str(folder)!r:.200}: {error.strerror or error}."
        ) from error
    if len(found) > MOST:
        raise UsageError(f"--folder {str(folder)!r:.200} holds more than {MOST:,} JSON files: split it.")
    return found


def _hosts(files: Sequence[Path], unread: list[LeftOut]) -> Iterator[Host]:
    for name, file in zip(short_names(files) if files else (), files, strict=True):
        try:
            report = read(file)
        except UsageError as error:
            if not _is_ours(file):
                unread.append(LeftOut(name, _reason(str(error))))
            continue
        try:
            yield host_of(name, report)
        except UsageError as error:
            unread.append(LeftOut(name, str(error), is_failure=False))


def _reason(text: str) -> str:
    """Return what is wrong with a file, without its name, which stands before it."""
    return text.partition("': ")[2] or text


def _is_ours(file: Path) -> bool:
    """Say whether a file is what `fleet -o fleet.json` has written."""
    try:
        with file.open("rb") as stream:
            return _OWN.encode() in stream.read(200)
    except OSError:
        return False


def _nothing(folder: Path, left_out: Sequence[LeftOut]) -> str:
    if not left_out:
        return f"--folder {str(folder)!r:.200} holds no report: save some there with -o NAME.json."
    first = left_out[0]
    why = first.why.removesuffix(".")
    return f"--folder {str(folder)!r:.200} holds no report of cases: {first.name}: {why}."
