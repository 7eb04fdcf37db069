"""Report: the saved document, to JSON and back.

Format history (the major number changes when a reader of the old one would be misled):
1.0  first version.
1.1  the experiments with methods, keys and cycles, and checkpoints under load: a Case says what its
     workers do in `method`, `picks`, `cycling` and `checkpointing`; a Trial has an outcome, series and
     the space of its database; a Run may have been skipped. Figures that somebody else `published`: what
     of their surroundings and their trials is not known is null; a number of processes that is not known 0.
     A/B tests: `ab`, and the `arm` of it to which a Run belongs.
     Crash tests: `crash`, without runs.
1.2  a case says only what its experiment has: its spec stands where the experiment puts it, and keys of other
     experiments are left out; the cases of power cuts have a workload of their own.
1.3  a look of an A/B test has a second bound and its time, the test says how its pairs were ordered, and
     when it would have ended.
1.4  a key-value load says which `loop` drove it; where it does not, that was Python's. An open loop:
      `arrivals` of a case say at which rate, and `arrived` of a trial what became of what was due. `limit`:
      a search for the highest rate, whose runs are those that were tried. The user's own work: `sql`, `app`
      and `command` of a case, what a trial's workers met, `sightings`, and a journal mode that is `kept`. A
      case of kv says in `where` whether it is told where the time goes, and its trials then have `where`.
      `durability` of a trial: what a commit is worth, on a scale that all targets share; `library` of a
      build, where that is not SQLite.
      `bare_call_ns` of a trial: what a call through the driver costs.
      `choice`: published settings that were compared, and a search for better ones. `together` of a trial:
      which part of a load of several hosts it was, and when by their server's clock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from sqlstress import __version__
from sqlstress.errors import UsageError
from sqlstress.report import jsonable
from sqlstress.report.environment import Environment
from sqlstress.report.results import Run
from sqlstress.report.study_results import AbTest, LimitSearch
from sqlstress.system.files import read_text
from sqlstress.system.importing import no_search

# Plain data as the JSON text of a report: a line for each value, and one for each list of numbers.
#
# `json.dumps` writes lines of its own in Python, ten times as slowly as it writes none in C: what a report
# has most of, lists of numbers and of rows of them, is left to C. A histogram of a thousand pairs on as
# many
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
    if isinstance(value, str):
        put(quoted(value))
    elif isinstance(value, dict) and value:
        _write_members(value, line, put)
    elif isinstance(value, list) and value and not _is_numeric(value):
        _write_items(value, line, put)
    else:
        put(_dumps(value))


def _is_numeric(items: list[Any]) -> bool:
    """Say whether a list holds numbers, or rows of them, and nothing else."""
    kinds = set(map(type, items))
    return kinds <= _NUMBERS or (kinds == {list} and set(map(type, chain.from_iterable(items))) <= _NUMBERS)


def _write_members(members: dict[str, Any], line: str, put: Callable[[str], None]) -> None:
    inner, before = f"{line} ", "{"
    for key, value in members.items():
        put(f"{before}{inner}{quoted(key)}: ")
        if type(value) is int:
            put(repr(value))
        else:
            _write(value, inner, put)
        before = ","
    put(f"{line}}}")


def _write_items(items: list[Any], line: str, put: Callable[[str], None]) -> None:
    inner, before = f"{line} ", "["
    for item in items:
        put(f"{before}{inner}")
        _write(item, inner, put)
        before = ","
    put(f"{line}]")


LARGEST = 16 << 20
"""Bytes of a report that is read, so that it is read and shown within two seconds.

Ten minutes of 256 workers, in bins of a tenth of a second, are 10 MB; 800 cases of a sweep over 1 to 8
workers are 16: most of it are histograms.
"""
MOST_TEXTS = 500_000
"""Texts and names of a report that is read: 1,000 cases of primary keys, the largest plan, have 310,000."""
MOST_RUNS = 1000
"""Runs of a report that is read: the cases of the largest plan. An A/B test has twice as many."""

FORMAT_VERSION = "1.4"

_VERSION = re.compile(r"([0-9]{1,4})\.[0-9]{1,4}")


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
    limit: LimitSearch | None = None
    """A search for the highest rate that holds a promise; None for anything else."""
    published: str | None = None
    """Who measured and published the figures, and on what: nothing of them is verified, and the seeds of
    their cases say nothing. None: sqlstress measured them."""
    results: dict[str, Any] = field(default_factory=dict)
    """What studies have found that are no sweeps of cases, by the name of their experiment."""

    json_form: ClassVar[str] = "sqlstress.report.document_json"
    """The module that writes and reads it: results stand where their experiments put them."""

    @property
    def holds_something(self) -> bool:
        """Whether anything was measured."""
        return bool(self.runs or self.results)


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
    runs, most = plain.get("runs"), MOST_RUNS * (2 if plain.get("ab") else 1)
    if isinstance(runs, list) and len(runs) > most:
        raise ValueError(f"it has more than {most:,} runs")
