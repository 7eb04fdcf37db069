"""Report: the saved document, and its way to disk and back.

Format history (the major number changes when a reader of the old one would be misled):
1.0  first version.
1.1  the experiments with methods, keys and cycles, and checkpoints under load: a Case says what its
     workers do in `method`, `picks`, `cycling` and `checkpointing`; a Trial has an outcome, series and
     the space of its database; a Run may have been skipped. Figures that somebody else `published`: what
     of their surroundings and their trials is not known is null; a number of processes that is not known 0.
     A/B tests: `ab`, and the `arm` of it to which a Run belongs.
     Crash tests: `crash`, without runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sqlstress import __version__, jsonable
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.in_use import tried_again
from sqlstress.report.ab import AbTest
from sqlstress.report.crash import Crash
from sqlstress.report.environment import Environment
from sqlstress.report.results import Run
from sqlstress.textfile import read_text

LARGEST = 64 << 20
"""Bytes of a report that is read. Ten minutes of 256 workers, in bins of a tenth of a second, are 10 MB."""
MOST_RUNS = 2000
"""Runs of a report that is read: twice the cases of the largest plan, for the arms of an A/B test."""

FORMAT_VERSION = "1.1"

_VERSION = re.compile(r"([0-9]{1,4})\.[0-9]{1,4}")
_NUMBERS = re.compile(r"\[\s+-?\d[\d.e+-]*(?:,\s+-?\d[\d.e+-]*)*\s+\]")
"""A list of numbers: no string of JSON holds a line break, so nothing else looks like one."""
_LONG_NAME = 200
"""Bytes of a file's name; 255 is the most on usual systems."""
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,4})")
_STANDARD_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


@dataclass(frozen=True, slots=True)
class Report:
    """What is saved after every case."""

    created: str
    """When the measurement began: ISO 8601, UTC; empty where it is not known."""
    command: tuple[str, ...]
    """The command line, so that it can be run again; empty where there was none."""
    environment: Environment
    """Where it was measured."""
    runs: tuple[Run, ...] = ()
    """The cases measured so far, in the plan's order."""
    planned: int = 0
    """Number of cases that the plan holds."""
    interrupted: bool = False
    """Stopped before every planned case had run."""
    format_version: str = FORMAT_VERSION
    """major.minor of this format."""
    tool_version: str = __version__
    """Version of sqlstress that measured; empty where it did not."""
    ab: AbTest | None = None
    """Two arms measured in turns, and what their pairs say; None for anything else."""
    published: str | None = None
    """Who measured and published the figures, and on what: nothing of them is verified, and the seeds of
    their cases say nothing. None: sqlstress measured them."""
    crash: Crash | None = None
    """What was left after crashes; None for anything else. Such a report has no runs."""

    @property
    def holds_something(self) -> bool:
        """Whether anything was measured."""
        return bool(self.runs) or self.crash is not None


def to_json(report: Report) -> str:
    """Write a report as JSON text, lists of plain numbers on one line each."""
    text = json.dumps(jsonable.to_plain(report), indent=1, allow_nan=False)
    return _NUMBERS.sub(lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"


def from_json(text: str) -> Report:
    """Read a report; unknown keys are ignored, an unknown major version is refused.

    Raises UsageError, in a line of bounded length, whatever the text holds.
    """
    try:
        plain = json.loads(text, parse_constant=_refuse_constant)
        _check_version(plain)
        _check_length(plain)
        return jsonable.from_plain(Report, plain)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not a sqlstress report: {error}") from error


def read(path: Path) -> Report:
    """Read a saved report. Raises UsageError, in a line that names the file."""
    try:
        return from_json(read_text(path, LARGEST))
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r:.200}: {error.strerror or error}.") from error
    except ValueError as error:
        raise UsageError(f"{str(path)!r:.200} is not a sqlstress report: {error}.") from error
    except UsageError as error:
        raise UsageError(f"{str(path)!r:.200}: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_version(plain: Any) -> None:
    version = plain.get("format_version") if isinstance(plain, dict) else None
    if not isinstance(version, str):
        raise ValueError("it has no format_version")
    found = _VERSION.fullmatch(version)
    if not found:
        raise ValueError("its format_version is not of the form major.minor")
    if found[1] != FORMAT_VERSION.split(".")[0]:
        raise UsageError(
            f"the report has format {version}, this sqlstress reads {FORMAT_VERSION}: "
            "use the version that wrote it"
        )


def _check_length(plain: dict[str, Any]) -> None:
    """Refuse what no plan can have asked for before time and memory go into reading it."""
    runs = plain.get("runs")
    if isinstance(runs, list) and len(runs) > MOST_RUNS:
        raise ValueError(f"it has more than {MOST_RUNS:,} runs")


def is_stream(path: Path) -> bool:
    """Say whether text written there stays written: a device, a pipe, an open descriptor. Raises OSError.

    Such an output is to be written once, at the end; a file may be written again after every case.
    """
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part of it.

    A symbolic link is followed. What is not a file (see `is_stream`) is written into, never replaced.
    Raises EnvironmentFailure.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if is_stream(path):
            _write_into(path, data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EnvironmentFailure(f"cannot write {path}: {reason}; choose another file with -o") from error


def _descriptor(path: Path) -> int | None:
    """Return the open descriptor that a path names.

    Opening such a path anew would truncate the file that standard output was redirected to.
    """
    if os.name != "posix":
        return None
    found = _DESCRIPTOR.fullmatch(str(path))
    return int(found[1]) if found else _STANDARD_STREAMS.get(str(path))


def _write_into(path: Path, data: bytes) -> None:
    descriptor = _descriptor(path)
    with path.open("wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.write(data)


def _temporary_name(name: str) -> str:
    """Return a name that is the same at every save, so that the next one clears away what a killed one left.

    With that of a long name, which must not become longer, goes a number that tells it from the others.
    """
    if len(os.fsencode(name)) <= _LONG_NAME:
        return f".{name}.sqlstress-tmp"
    return f".{zlib.crc32(os.fsencode(name)):08x}.sqlstress-tmp"


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(_temporary_name(target.name))
    temporary.unlink(missing_ok=True)
    try:
        with temporary.open("xb") as file:
            file.write(data)
        if target.exists():  # what nobody else may read stays so
            shutil.copymode(target, temporary)
        tried_again(lambda: temporary.replace(target))
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
