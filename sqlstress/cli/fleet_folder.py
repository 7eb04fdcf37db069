"""A folder of reports becomes a fleet: what is no report is named, and the others are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlstress.analysis.fleet import Fleet, Host, LeftOut, gathered, host_of
from sqlstress.cli.console import complain
from sqlstress.cli.names import short_names
from sqlstress.display.clean import shortened
from sqlstress.errors import UsageError
from sqlstress.report import read

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
