"""The figures that benchmark trackers keep, under a name for each case that stays the same from one report to
the next, and as they read them: Bencher and github-action-benchmark.

Formats: https://bencher.dev/docs/reference/bencher-metric-format/ and, in two files, since it has one
direction for all figures of a file, https://github.com/benchmark-action/github-action-benchmark,
"customBiggerIsBetter" and "customSmallerIsBetter".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from statistics import median
from typing import Any

from sqlstress.analysis.wording import finite
from sqlstress.experiment import face_of
from sqlstress.options.option import Unknown
from sqlstress.report import Environment, Report, Run
from sqlstress.report.case import Case
from sqlstress.show.blocks import clean
from sqlstress.statistics.units import NS_PER_MS
from sqlstress.target import DEFAULT

_LONGEST = 200


def case_names(report: Report) -> tuple[str, ...]:
    """Return a name for each run: what is measured, then whatever of it is not sqlstress's own default.

    What says how surely it is measured (window, trials, seed, proof) is no part of it.
    """
    seen: Counter[str] = Counter()
    names = []
    for run in report.runs:
        arm = f"{run.arm}, " if run.arm else ""
        name = clean(", ".join((f"{arm}{run.case.workload}: {run.case.label}", *_particulars(run.case))))[
            :_LONGEST
        ]
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


def surroundings(environment: Environment) -> str:
    """Return system and architecture: "Linux x86_64"."""
    return clean(f"{environment.host.system} {environment.host.machine}") or "unknown system"


def _particulars(case: Case) -> Iterator[str]:
    if case.driver != DEFAULT:
        yield f"driver={case.driver}"
    if case.ops is not None:
        yield f"ops={case.ops}"
    if case.arrivals is not None:
        yield from _changed(case.arrivals, ())
    spec, experiment = case.spec, face_of(case)
    parts = [one.name for one in fields(spec) if is_dataclass(getattr(spec, one.name))]
    own = (
        _unknown(spec)
        if isinstance(spec, Unknown)
        else [*_changed(spec, {*experiment.words.in_label, *parts})]
    )
    settings = [*_changed(case.settings, ())]
    # Trackers know a case by its name: the order is what it was when each of them came.
    yield from (*own, *settings) if experiment.behaviour.sweeps else (*settings, *own)
    for part in parts:
        yield from _changed(getattr(spec, part), experiment.words.in_label)


def _unknown(spec: Unknown) -> list[str]:
    return [f"{name}={value}" for name, value in spec.said().items()]


def _changed(part: Any, said: Collection[str]) -> Iterator[str]:
    """Yield the fields of a part of a case that are not as they are by default."""
    for field in fields(part):
        value = getattr(part, field.name)
        if field.default is MISSING or value == field.default or field.name in said:
            continue
        if field.name == "pragmas":
            yield from (f"{name}={setting}" for name, setting in value)
        else:
            yield f"{field.name.replace('_', '-')}={_written(value)}"


def _written(value: object) -> str:
    switches = {True: "on", False: "off", None: "unset"}
    return switches[value] if value is None or isinstance(value, bool) else str(value)


Metric = dict[str, float]


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a case over its valid trials."""

    value: float
    """The median."""
    low: float
    """The lowest."""
    high: float
    """The highest."""

    @property
    def is_range(self) -> bool:
        """Whether there was more than one trial to tell how far they differ."""
        return self.low < self.high


def rates(run: Run) -> Iterator[float | None]:
    """Yield what each trial did a second: transactions, or the rows of a method where it was done."""
    return face_of(run.case).show().tracked(run)


def unit(run: Run) -> str:
    """Return what the rates count, in the plural."""
    return face_of(run.case).show().tracked_unit(run.case)


def throughput(run: Run) -> Measure | None:
    """Return the rate of a run; None where there is none that can be believed."""
    return _measure(run, rates(run))


def p99_ns(run: Run, kind: str) -> Measure | None:
    """Return the 99th percentile of a kind of operation, in ns; None where there is none."""
    found = (trial.latency[kind] for trial in run.valid if kind in trial.latency)
    return _measure(run, (latency.p99_ns for latency in found))


def kinds(run: Run) -> list[str]:
    """Return the kinds of operations of a run, by name."""
    return sorted({kind for trial in run.valid for kind in trial.latency})


def _measure(run: Run, values: Iterable[float | None]) -> Measure | None:
    known = [value for value in map(finite, values) if value is not None]
    if not known or run.verdict.status == "failed":
        return None
    return Measure(median(known), min(known), max(known))


def throughput_json(*reports: Report) -> str:
    """Return the throughputs, for `tool: customBiggerIsBetter`; what was proved wrong is left out."""
    return _document([entry for report in reports for entry in _throughputs(report)])


def latency_json(*reports: Report) -> str:
    """Return the 99th percentiles, for `tool: customSmallerIsBetter`."""
    return _document([entry for report in reports for entry in _latencies(report)])


def _document(entries: list[dict[str, Any]]) -> str:
    return json.dumps(entries, indent=1, allow_nan=False) + "\n"


def _throughputs(report: Report) -> Iterator[dict[str, Any]]:
    for run, name in zip(report.runs, _names(report), strict=True):
        if (measure := throughput(run)) is not None:
            yield _entry(name, f"{unit(run)}/s", measure, 1.0, run)


def _latencies(report: Report) -> Iterator[dict[str, Any]]:
    for run, name in zip(report.runs, _names(report), strict=True):
        for kind in kinds(run):
            if (measure := p99_ns(run, kind)) is not None:
                yield _entry(f"{name}: {clean(kind)} p99", "ms", measure, NS_PER_MS, run)


def _names(report: Report) -> list[str]:
    where = surroundings(report.environment)
    return [f"{name} ({where})" for name in case_names(report)]


def _entry(name: str, unit: str, measure: Measure, divisor: float, run: Run) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "unit": unit, "value": measure.value / divisor}
    if measure.is_range:
        entry["range"] = f"{measure.low / divisor:.6g} to {measure.high / divisor:.6g}"
    trials = len(run.valid)
    entry["extra"] = f"median of {trials} trials" if trials > 1 else "1 trial"
    return entry


def bencher_json(*reports: Report) -> str:
    """Return the throughput of each case, and beside it the 99th percentile of each kind of operation."""
    benchmarks: dict[str, dict[str, Metric]] = {}
    for report in reports:
        for name, measure, metric in _metrics(report):
            benchmarks.setdefault(name, {})[measure] = metric
    return json.dumps(benchmarks, indent=1, allow_nan=False) + "\n"


def _metrics(report: Report) -> Iterator[tuple[str, str, Metric]]:
    for run, name in zip(report.runs, _names(report), strict=True):
        if (tps := throughput(run)) is not None:
            yield name, "throughput", _metric(tps)
        for kind in kinds(run):
            if (latency := p99_ns(run, kind)) is not None:
                yield f"{name}: {clean(kind)} p99", "latency", _metric(latency)


def _metric(measure: Measure) -> Metric:
    metric = {"value": measure.value}
    if measure.is_range:
        metric |= {"lower_value": measure.low, "upper_value": measure.high}
    return metric
