"""Report: the saved document, its conversion to JSON and back, and the file that holds it.

History of the format, with the fields that each version added or removed. The major number changes if the new
format would mislead readers of the old format.
1.0  first version.
1.1  methods, keys, cycles, checkpoints under load: `method`, `picks`, `cycling`, `checkpointing` of a case;
     `outcome`, `note`, `series`, `space` of a trial; `skipped` of a run; `published` (unknown
     figures are null); `ab`, `arm`; `crash`.
1.2  a case has only the keys of its experiment; cases with power cuts have the workload `power-loss`.
1.3  `max_failed` of a case; `foreign_share`, `stolen_share`, `throttled` of a trial; `sync_after` of the
     environment; trials of the same `index` are from the same pass; `worst` and `seconds` of a look, and
     `order`, `max_pairs`, `max_time_s` of an A/B test.
1.4  `loop` of a key-value load (if missing: python); `arrivals` of a case and `arrived` of a trial;
     `limit`; `choice`; `where` of a case and of a trial; `sql`, `app`, `command` of a case; `sightings`,
     `durability`, `bare_call_ns`, `disk_share`, `write_lock` of a trial; `library` of a build;
     `longer` of a run; `p99_ns` of a worker; `journal_mode` "kept"; `findings`; `watch`.
1.5  `failures`, `quota`, `modules` of a trial; `allow_other_files` of an app; `name` of a case; `cpu_quota`
     of a host; `sync_again`, `sync_after_again` of the environment; `frames_now`, `wal_bytes_now`, `openers`,
     `hidden`, `links`, `is_mount` of a watch, `wal`, `name`, `writes` of its processes.
1.6  without `busy` of the settings of a case.
1.7  `wal` of a trial; without `made_by` of the picks of a case; `situation` of an app; `until_wal_bytes`,
     `waits`, `without_gap_s`, `held_s`, `wal_full` of a watch, `sqlite`, `usage` of its processes; without
     payload, unused bytes and overflow of the trees of a file.
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
from sqlstress.system.files import lock, path_length_note, read_text, reason, retry_while_denied, short_path
from sqlstress.version import __version__

# JSON text of plain data (dicts, lists, strings, numbers, booleans, None). Each value has its own line, but a
# list of numbers, or of rows (lists) of numbers, has a single line.
#
# `json.dumps` with indentation runs in Python. Without indentation it runs in C, which is ten times as fast.
# Most of a report is lists of numbers and of rows of numbers, so the C code writes each of these lists, on
# one line. With a line for each pair, a histogram of a thousand pairs would also take twice the space.


_NUMBERS = frozenset({int, float})
_dumps = json.JSONEncoder(allow_nan=False).encode


def json_text(plain: Any) -> str:
    """Return plain data as indented JSON text. Raise ValueError for NaN and infinity."""
    pieces: list[str] = []
    _write(plain, "\n", pieces.append)
    return "".join(pieces)


def _write(value: Any, line: str, put: Callable[[str], None]) -> None:
    """Pass the JSON text of a value to `put`, in pieces. `line` is a newline with the indentation."""
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
    kinds = set(map(type, items))
    return kinds <= _NUMBERS or (kinds == {list} and set(map(type, chain.from_iterable(items))) <= _NUMBERS)


MAX_BYTES = 16 << 20
"""Maximum size of a report file, in bytes. Larger files take more than two seconds to read.

Examples: a report of ten minutes with 256 workers has 10 MB, and one of 800 cases with 1 to 8 workers 16 MB.
"""
MAX_TEXTS = 500_000
"""Maximum number of strings and keys in a report file. 1,000 cases of the experiment `keys` have 310,000."""
MAX_RUNS = 1000
"""Maximum number of runs in a report file, and of cases in a plan. An A/B test has two runs per case."""

FORMAT_VERSION = "1.7"
"""Version of the report's format, as major.minor. The module's docstring has the history."""

_VERSION = re.compile(r"([0-9]{1,4})\.[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Report:
    """Saved report of a measurement. The file is written again after each case."""

    created: str
    """Date and time at which the measurement began, in UTC (ISO 8601); empty if unknown."""
    command: tuple[str, ...]
    """Words of the command line that repeats the measurement; empty if unknown."""
    environment: Environment
    """Machine, file system and libraries of the measurement."""
    runs: tuple[Run, ...] = ()
    """Measured cases so far, each with its trials, in the order of the plan."""
    planned: int = 0
    """Number of cases in the plan."""
    interrupted: bool = False
    """Whether the user stopped the measurement before all planned cases were measured."""
    format_version: str = FORMAT_VERSION
    """Version of the report's format, as major.minor."""
    tool_version: str = __version__
    """Version of sqlstress that measured; empty for published figures."""
    ab: AbTest | None = None
    """A/B test: two variants measured in turns; None for other measurements."""
    limit: LimitSearch | None = None
    """Search for the highest rate that keeps promised latencies; None for other measurements."""
    published: str | None = None
    """Author and machine of published figures, which are not verified; None if sqlstress measured."""
    results: dict[str, Any] = field(default_factory=dict)
    """Results of measurements that have no runs, such as a crash test, by name of the experiment."""

    def to_plain(self) -> dict[str, Any]:
        """Return the report as data for JSON."""
        plain = jsonable.plain_fields(self, without="results")
        for name, study in result_formats().items():
            place, key = study.result_key
            if self.results:
                plain.setdefault(place, {})[key] = jsonable.to_plain(self.results.get(name))
            else:
                plain[place] = None
        return plain

    @classmethod
    def from_plain(cls, found: Mapping[str, Any]) -> Report:
        """Return the report of a JSON object. Raise InvalidField if a field is wrong."""
        values, results = jsonable.read_fields(cls, found, without="results"), {}
        for name, study in result_formats().items():
            place, key = study.result_key
            entries = jsonable.convert_member(jsonable.reader(dict[str, Any] | None), found.get(place), place)
            if entries and entries.get(key) is not None:
                read = partial(jsonable.convert_member, jsonable.reader(study.result), name=key)
                results[name] = jsonable.convert_member(read, entries[key], place)
        return cls(**values, results=results)

    @property
    def holds_something(self) -> bool:
        """Whether the report has any run, or any other result, such as that of a crash test."""
        return bool(self.runs or self.results)


@contextmanager
def without_gc() -> Iterator[None]:
    """Turn the garbage collector off in the block: visiting the millions of lists of a report takes long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def to_json(report: Report, **more: Any) -> str:
    """Return a report as JSON text. `more` has additional items, which readers of reports ignore."""
    with without_gc():
        return json_text({**jsonable.to_plain(report), **more}) + "\n"


def from_json(text: str) -> Report:
    """Return the report in a JSON text. Unknown keys are ignored.

    Raise UsageError, with a one-line message, if the text is no report of this major version.
    """
    try:
        if text.count('"') > 2 * MAX_TEXTS:
            raise ValueError(f"it has more than {MAX_TEXTS:,} texts and names")
        with without_gc():
            plain = json.loads(text, parse_constant=_refuse_constant)
            _check(plain)
            return jsonable.from_plain(Report, plain)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not a sqlstress report: {error}") from error


def read(path: Path) -> Report:
    """Return the report in a file. Raise UsageError, with the file's name, if it cannot be read."""
    try:
        return from_json(read_text(path, MAX_BYTES))
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
"""Name of each command or option that version 0.2.0 removed, by the key of its results in JSON."""


def _check_removed(plain: dict[str, Any]) -> None:
    trials = [trial for run in _list_in(plain, "runs") for trial in _list_in(run, "trials")]
    for results in (*plain.values(), *trials):
        for key, ability in _REMOVED.items() if isinstance(results, dict) else ():
            if results.get(key) is not None:
                raise UsageError(
                    f"sqlstress {__version__} has no {ability} any more. Use the version that wrote the "
                    "report."
                )


def _list_in(value: Any, key: str) -> list[Any]:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []


def _check(plain: Any) -> None:
    """Check the format version and the number of runs of JSON data before it is converted.

    Raise ValueError if the data is no report, or too large. Raise UsageError for another major version, or
    for results of a removed command.
    """
    version = plain.get("format_version") if isinstance(plain, dict) else None
    if not isinstance(version, str):
        raise ValueError("format_version is missing")
    match = _VERSION.fullmatch(version)
    if not match:
        raise ValueError("format_version is not major.minor")
    if match[1] != FORMAT_VERSION.split(".")[0]:
        raise UsageError(
            f"the report has format {version}, but this sqlstress reads {FORMAT_VERSION}. Use the version "
            "that wrote it"
        )
    _check_removed(plain)
    runs, most = plain.get("runs"), MAX_RUNS * (2 if plain.get("ab") else 1)
    if isinstance(runs, list) and len(runs) > most:
        raise ValueError(f"it has more than {most:,} runs")


# Writing a report: completely or not at all, and without replacing devices or pipes.
#
# The text is written to a locked temporary file, which then replaces the target. A temporary file without a
# lock belongs to a killed writer, and the next sqlstress removes it.


_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,4})")
_STANDARD_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_UNFINISHED = re.compile(r"\.sqlstress-[0-9a-f]{8}\.tmp")
_TRIES = 3
"""Maximum number of attempts to replace a file."""
STDOUT = Path("-")
"""Path that means standard output, never a file of this name."""


def is_stdout(path: Path) -> bool:
    """Return whether a path means standard output: "-", /dev/stdout, /dev/fd/1 or /proc/self/fd/1."""
    return path == STDOUT or _descriptor(path) == 1


def is_stream(path: Path) -> bool:
    """Return whether a path is a stream (device, pipe or open descriptor), which no file must replace.

    Raise OSError if the path cannot be examined.
    """
    if path == STDOUT or _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def write_atomically(path: Path, text: str) -> None:
    """Write a file, so that readers see the whole old text or the whole new text.

    Symbolic links are followed. If the path is a stream (a device, a pipe or an open descriptor), write to it
    without replacing it. Raise EnvironmentFailure if the file cannot be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if path == STDOUT:
            # Bytes keep line ends and encoding as they are. A reader that closes the pipe early is no error.
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
        name = "to the standard output" if path == STDOUT else short_path(path)
        raise EnvironmentFailure(
            f"cannot write {name}: {reason(error)}. Choose another file with -o."
        ) from error


def _descriptor(path: Path) -> int | None:
    """Return the number of the open descriptor that a path such as /dev/stdout names; else None.

    If standard output is redirected to a file, opening /dev/stdout would truncate this file.
    """
    if os.name != "posix":
        return None
    match = _DESCRIPTOR.fullmatch(str(path))
    return int(match[1]) if match else _STANDARD_STREAMS.get(str(path))


def try_creation(target: Path) -> None:
    """Test whether `target` can be written: create and remove a temporary file next to it, or raise OSError.

    If the path of `target` may be too long for Windows, create `target` itself. The path of a temporary file
    may be shorter, and would then not show the problem.
    """
    place = _temporary_path(target)
    if path_length_note(target) and len(str(target)) > len(str(place)) and not target.exists():
        place = target
    place.open("xb").close()
    # Another sqlstress may have removed the file, because it is not locked.
    place.unlink(missing_ok=True)


def _temporary_path(target: Path) -> Path:
    return target.with_name(f".sqlstress-{token_hex(4)}.tmp")


def _replace(target: Path, data: bytes) -> None:
    for _ in range(_TRIES - 1):
        # Another sqlstress may remove the temporary file before it is locked, or after it is closed. If so,
        # try again.
        with suppress(FileNotFoundError):
            return _replace_at_once(target, data)
    return _replace_at_once(target, data)


def _replace_at_once(target: Path, data: bytes) -> None:
    temporary = _temporary_path(target)
    try:
        with temporary.open("xb") as file:
            # If the file system has no locks, `remove_unfinished` cannot lock the file either, so it does not
            # remove the file.
            with suppress(OSError):
                lock(file)
            if target.exists():  # the new file gets the permissions of the old file
                shutil.copymode(target, temporary)
            file.write(data)
        retry_while_denied(lambda: temporary.replace(target))
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary files in a folder that no writer has locked: their writers were killed."""
    with suppress(OSError):
        for path in folder.iterdir():
            if _UNFINISHED.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                with suppress(OSError):  # A writer has locked the file, or the file belongs to another user.
                    with path.open("rb") as file:
                        lock(file)
                    path.unlink()
