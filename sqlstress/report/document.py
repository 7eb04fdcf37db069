"""Report: the saved document, to JSON and to disk, and back.

Format history (the major number changes when a reader of the old one would be misled):
1.0  first version.
1.1  methods, keys, cycles, checkpoints under load: `method`, `picks`, `cycling`, `checkpointing` of a case;
     `outcome`, `note`, `series`, `space` of a trial; `skipped` of a run; `published`, of which what is not
     known is null; `ab`, `arm`; `crash`.
1.2  a case has only the keys of its experiment; the cases of power cuts have the workload `power-loss`.
1.3  `max_failed` of a case; `foreign_share`, `stolen_share`, `throttled` of a trial; `sync_after` of the
     environment; trials of the same `index` are from the same pass; `worst` and `seconds` of a look, and
     `order`, `max_pairs`, `max_time_s` of an A/B test.
1.4  `loop` of a key-value load (without it: Python's); `arrivals` of a case and `arrived` of a trial;
     `limit`; `choice`; `where` of a case and of a trial; `sql`, `app`, `command` of a case; `sightings`,
     `durability`, `bare_call_ns`, `disk_share`, `write_lock` of a trial; `library` of a build;
     `longer` of a run; `p99_ns` of a worker; `journal_mode` "kept"; `findings`; `watch`.
1.5  `failures`, `quota`, `modules` of a trial; `allow_other_files` of an app; `name` of a case; `cpu_quota`
     of a host; `sync_again`, `sync_after_again` of the environment; `frames_now`, `wal_bytes_now`, `openers`,
     `hidden`, `links`, `is_mount` of a watch, `wal`, `name`, `writes` of its processes.
1.6  without `busy` of the settings of a case.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from secrets import token_hex
from typing import Any, NoReturn

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.registry import result_formats
from sqlstress.report import jsonable
from sqlstress.report.environment import Environment
from sqlstress.report.results import Run
from sqlstress.report.study_results import AbTest, LimitSearch
from sqlstress.system.files import for_message, lock, read_text, reason, too_long, tried_again
from sqlstress.version import __version__

# Plain data as the JSON text of a report: a line for each value, and one for each list of numbers.
#
# `json.dumps` writes lines of its own in Python, ten times as slowly as it writes none in C: what a report
# has most of, lists of numbers and of rows of them, is left to C. A histogram of a thousand pairs on as many
# lines would be twice as long, too.


_NUMBERS = frozenset({int, float})
_dumps = json.JSONEncoder(allow_nan=False).encode


def json_text(plain: Any) -> str:
    """Return dicts, lists, texts, numbers, booleans and None as JSON. Raises ValueError on NaN."""
    pieces: list[str] = []
    _write(plain, "\n", pieces.append)
    return "".join(pieces)


def _write(value: Any, line: str, put: Callable[[str], None]) -> None:
    """Write a value; `line` begins a line as far in as the value stands."""
    inner, before = f"{line} ", ""
    if isinstance(value, str):
        put(quoted(value))
    elif isinstance(value, dict) and value:
        put("{")
        for key, item in value.items():
            put(f"{before}{inner}{quoted(key)}: ")
            if type(item) is int:
                put(repr(item))
            else:
                _write(item, inner, put)
            before = ","
        put(f"{line}}}")
    elif isinstance(value, list) and value and not _is_numeric(value):
        put("[")
        for item in value:
            put(f"{before}{inner}")
            _write(item, inner, put)
            before = ","
        put(f"{line}]")
    else:
        put(_dumps(value))


def _is_numeric(items: list[Any]) -> bool:
    """Say whether a list holds numbers, or rows of them, and nothing else."""
    kinds = set(map(type, items))
    return kinds <= _NUMBERS or (kinds == {list} and set(map(type, chain.from_iterable(items))) <= _NUMBERS)


LARGEST = 16 << 20
"""Bytes of a report that is read, so that it is read and shown within two seconds.

Ten minutes of 256 workers, in bins of a tenth of a second, are 10 MB; 800 cases of a sweep over 1 to 8
workers are 16: most of it are histograms.
"""
MOST_TEXTS = 500_000
"""Texts and names of a report that is read: 1,000 cases of primary keys, the largest plan, have 310,000."""
MOST_RUNS = 1000
"""Runs of a report that is read: the cases of the largest plan. An A/B test has twice as many."""

FORMAT_VERSION = "1.6"

_VERSION = re.compile(r"([0-9]{1,4})\.[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Report:
    """What is saved as the report grows."""

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
    limit: LimitSearch | None = None
    """A search for the highest rate that holds a promise; None for anything else."""
    published: str | None = None
    """Who measured and published the figures, and on what: nothing of them is verified, and the seeds of
    their cases say nothing. None: sqlstress measured them."""
    results: dict[str, Any] = field(default_factory=dict)
    """What studies have found that are no sweeps of cases, by the name of their experiment."""

    def to_plain(self) -> dict[str, Any]:
        """Return the report as JSON-able data: results stand where their experiments put them."""
        found = jsonable.plain_fields(self, without="results")
        for name, study in result_formats().items():
            place, key = study.result_key
            if self.results:
                found.setdefault(place, {})[key] = jsonable.to_plain(self.results.get(name))
            else:
                found[place] = None
        return found

    @classmethod
    def from_plain(cls, found: Mapping[str, Any]) -> Report:
        """Read a report. Raises Misfit."""
        values, results = jsonable.read_fields(cls, found, without="results"), {}
        for name, study in result_formats().items():
            place, key = study.result_key
            own = jsonable.member(jsonable.reader(dict[str, Any] | None), found.get(place), place)
            if own and own.get(key) is not None:
                read = partial(jsonable.member, jsonable.reader(study.result), name=key)
                results[name] = jsonable.member(read, own[key], place)
        return cls(**values, results=results)

    @property
    def holds_something(self) -> bool:
        """Whether anything was measured."""
        return bool(self.runs or self.results)


@contextmanager
def no_search() -> Iterator[None]:
    """Search for no garbage meanwhile: among the millions of lists of a report it takes most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def to_json(report: Report, **more: Any) -> str:
    """Write a report as JSON text, lists of numbers and of rows of them on one line each.

    `more` are keys behind its own, which a reader ignores.
    """
    with no_search():
        return json_text({**jsonable.to_plain(report), **more}) + "\n"


def from_json(text: str) -> Report:
    """Read a report; unknown keys are ignored, an unknown major version is refused.

    Raises UsageError, in a line of bounded length, whatever the text holds.
    """
    try:
        if text.count('"') > 2 * MOST_TEXTS:
            raise ValueError(f"it has more than {MOST_TEXTS:,} texts and names")
        with no_search():
            plain = json.loads(text, parse_constant=_refuse_constant)
            _check(plain)
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


_REMOVED = {
    "power": "simulated power cuts",
    "tune": "tune",
    "presets": "presets",
    "together": "fleet --together",
}
"""Results that version 0.2.0 removed: key in an object of the report, or in a trial → name of the ability."""


def _check_removed(plain: dict[str, Any]) -> None:
    """Raise UsageError if the report has results of a removed ability."""
    trials = [trial for run in _list_in(plain, "runs") for trial in _list_in(run, "trials")]
    for results in (*plain.values(), *trials):
        for key, ability in _REMOVED.items() if isinstance(results, dict) else ():
            if results.get(key) is not None:
                raise UsageError(
                    f"sqlstress {__version__} has no {ability} any more. Use the version that wrote the "
                    "report."
                )


def _list_in(value: Any, key: str) -> list[Any]:
    """Return the list of an object's key; an empty list if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _check(plain: Any) -> None:
    """Refuse another format, and what no plan can have asked for: before time and memory go into reading."""
    version = plain.get("format_version") if isinstance(plain, dict) else None
    if not isinstance(version, str):
        raise ValueError("format_version is missing")
    found = _VERSION.fullmatch(version)
    if not found:
        raise ValueError("format_version is not major.minor")
    if found[1] != FORMAT_VERSION.split(".")[0]:
        raise UsageError(
            f"the report has format {version}, but this sqlstress reads {FORMAT_VERSION}. Use the version "
            "that wrote it"
        )
    _check_removed(plain)
    runs, most = plain.get("runs"), MOST_RUNS * (2 if plain.get("ab") else 1)
    if isinstance(runs, list) and len(runs) > most:
        raise ValueError(f"it has more than {most:,} runs")


# How a report gets to disk: as a whole or not at all, and without harm to what is no file.
#
# What is being written lies beside the file that it will replace, locked as long as its writer lives. What a
# killed one has left there is known by its name, and by a lock that nobody holds.


_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,4})")
_STANDARD_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_UNFINISHED = re.compile(r"\.sqlstress-[0-9a-f]{8}\.tmp")
_TRIES = 3
STDOUT = Path("-")
"""What stands for the standard output: no file has this name."""


def is_stdout(path: Path) -> bool:
    """Say whether a path is the standard output, under any of its names."""
    return path == STDOUT or _descriptor(path) == 1


def is_stream(path: Path) -> bool:
    """Say whether text written there stays written: a device, a pipe, an open descriptor. Raises OSError.

    Such an output is to be written once, at the end; a file may be written again as the report grows.
    """
    if path == STDOUT or _descriptor(path) is not None:
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
        if path == STDOUT:
            # Into it as into a file: bytes of our own. A reader that has had enough is no error.
            with suppress(BrokenPipeError):
                sys.stdout.flush()
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
        elif is_stream(path):
            descriptor = _descriptor(path)
            with path.open("wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        name = "to the standard output" if path == STDOUT else for_message(path)
        raise EnvironmentFailure(
            f"cannot write {name}: {reason(error)}. Choose another file with -o."
        ) from error


def _descriptor(path: Path) -> int | None:
    """Return the open descriptor that a path names.

    Opening such a path anew would truncate the file that standard output was redirected to.
    """
    if os.name != "posix":
        return None
    found = _DESCRIPTOR.fullmatch(str(path))
    return int(found[1]) if found else _STANDARD_STREAMS.get(str(path))


def try_creation(target: Path) -> None:
    """Create a file next to a target, and remove it. Raises OSError.

    If the target's path is too long for some Windows, and longer, it is created instead.
    """
    place = _beside(target)
    if too_long(target) and len(str(target)) > len(str(place)) and not target.exists():
        place = target
    place.open("xb").close()
    # Another sqlstress may have removed it as abandoned.
    place.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".sqlstress-{token_hex(4)}.tmp")


def _replace(target: Path, data: bytes) -> None:
    for _ in range(_TRIES - 1):
        # Before it is locked, and when it is closed, another sqlstress may take it for abandoned.
        with suppress(FileNotFoundError):
            return _replace_at_once(target, data)
    return _replace_at_once(target, data)


def _replace_at_once(target: Path, data: bytes) -> None:
    temporary = _beside(target)
    try:
        with temporary.open("xb") as file:
            with suppress(OSError):  # a file system without locks: then nobody else takes one either
                lock(file)
            if target.exists():  # what nobody else may read stays so
                shutil.copymode(target, temporary)
            file.write(data)
        tried_again(lambda: temporary.replace(target))
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_unfinished(folder: Path) -> None:
    """Remove from a folder what writers of reports have left there that are no longer alive."""
    with suppress(OSError):
        for path in folder.iterdir():
            if _UNFINISHED.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                with suppress(OSError):  # it is locked, or another user's
                    with path.open("rb") as file:
                        lock(file)
                    path.unlink()
