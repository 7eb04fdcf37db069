"""A report as CSV: long, a row per trial and worker, units in the columns' names."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from sqlstress.analysis.builds import version
from sqlstress.display.clean import clean
from sqlstress.display.shown import Shown, Value
from sqlstress.experiment import face_of
from sqlstress.render.csvcolumns import ARM, ARRIVED, CASE, LATENCY, OF_RATE, REPORT, RUN, TRIAL, WORKER
from sqlstress.report import Report, Run, Trial, WorkerResult

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the start of a formula; the wide forms too."""
_KINDS = ("get", "pair", "replace", "update")


@dataclass(frozen=True, slots=True)
class _Line:
    """What one row is about."""

    run: Run
    trial: Trial | None
    worker: WorkerResult | None


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that depend on what the report holds."""

    case: dict[str, Callable[[Run], Value]]
    settings: list[str]
    trial: dict[str, Callable[[Trial], Value]]
    latencies: list[str]
    kinds: list[str]


def report_csv(*reports: Report) -> str:
    """Return reports as CSV (RFC 4180, but lines end in LF); a missing figure is an empty field.

    A trial without workers has one row, and so has a case without trials: no error is left out. Text
    that a spreadsheet would run as a formula begins with an apostrophe.
    """
    columns = _columns([run for report in reports for run in report.runs])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_field, _header(columns)))
    for report in reports:
        about = [value(report) for value in REPORT.values()]
        for number, run in enumerate(report.runs, 1):
            origin = (*about, number, _sqlite_version(report, run))
            for line in _lines(run):
                writer.writerow(map(_field, chain(origin, _values(line, columns))))
    return text.getvalue()


def _columns(runs: Sequence[Run]) -> _Columns:
    trials = [trial for run in runs for trial in run.trials]
    return _Columns(
        case={
            **CASE,
            **(OF_RATE if any(run.case.arrivals for run in runs) else {}),
            **_of_cases(runs),
            **RUN,
            **(ARM if any(run.arm for run in runs) else {}),
        },
        settings=_names(trial.effective for trial in trials),
        trial={**TRIAL, **(ARRIVED if any(trial.arrived for trial in trials) else {}), **_of_trials(runs)},
        latencies=_names(trial.latency for trial in trials),
        kinds=_names(worker.operations for trial in trials for worker in trial.workers),
    )


def _by_experiment(runs: Iterable[Run]) -> dict[Shown, list[Run]]:
    found: dict[Shown, list[Run]] = {}
    for run in runs:
        found.setdefault(face_of(run.case).show(), []).append(run)
    return found


def _of_cases(runs: Sequence[Run]) -> dict[str, Callable[[Run], Value]]:
    """Return the columns that only some experiments' cases have."""
    found: dict[str, Callable[[Run], Value]] = {}
    for shown, own in _by_experiment(runs).items():
        found |= shown.case_columns(own)
    return found


def _of_trials(runs: Sequence[Run]) -> dict[str, Callable[[Trial], Value]]:
    """Return the columns that only some experiments' trials have."""
    found: dict[str, Callable[[Trial], Value]] = {}
    for shown, own in _by_experiment(runs).items():
        found |= shown.trial_columns([trial for run in own for trial in run.trials])
    return found


def _names(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the keys of all mappings, the known kinds of operation first."""
    found = set(chain.from_iterable(mappings))
    return [*(kind for kind in _KINDS if kind in found), *sorted(found.difference(_KINDS))]


def _lines(run: Run) -> Iterator[_Line]:
    for trial in run.trials or (None,):
        for worker in (trial.workers if trial else ()) or (None,):
            yield _Line(run, trial, worker)


def _header(columns: _Columns) -> Iterator[str]:
    yield from REPORT
    yield from ("case", "sqlite_version")
    yield from columns.case
    yield from (f"effective_{name}" for name in columns.settings)
    yield from columns.trial
    yield from (f"{kind}_{figure}" for kind in columns.latencies for figure in LATENCY)
    yield from WORKER
    yield from (f"worker_{kind}_transactions" for kind in columns.kinds)


def _values(line: _Line, columns: _Columns) -> Iterator[Value]:
    """Yield the fields of a row from its case on, in the order of the header."""
    run, trial, worker = line.run, line.trial, line.worker
    yield from (value(run) for value in columns.case.values())
    yield from (trial.effective.get(name) if trial else None for name in columns.settings)
    yield from (value(trial) if trial else None for value in columns.trial.values())
    found = [trial.latency.get(kind) if trial else None for kind in columns.latencies]
    yield from (value(latency) if latency else None for latency in found for value in LATENCY.values())
    yield from (value(worker) if worker else None for value in WORKER.values())
    yield from (worker.operations.get(kind, 0) if worker else None for kind in columns.kinds)


def _sqlite_version(report: Report, run: Run) -> str | None:
    arms = report.ab.arms if report.ab else ()
    own = next((arm.builds for arm in arms if arm.name == run.arm), ()) or report.environment.builds
    return next((version(build) for build in own if build.driver == run.case.driver), None)


def _field(value: Value) -> Value:
    """Return what is written: numbers as they are, text in one line that is no formula."""
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
