"""Figures of a report for two benchmark trackers: Bencher and github-action-benchmark.

A tracker stores the figures of many reports and shows their history. A tracker recognises a figure by its
name, so a case must have the same name in each report.

Formats: https://bencher.dev/docs/reference/bencher-metric-format/ and "customBiggerIsBetter" and
"customSmallerIsBetter" of https://github.com/benchmark-action/github-action-benchmark, which needs two files,
because all figures of a file have the same direction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from statistics import median
from typing import Any

from sqlstress.experiment import case_label, experiment_of
from sqlstress.report import Environment, Report
from sqlstress.report.case import Case
from sqlstress.show.blocks import clean
from sqlstress.show.shown import presenter_of
from sqlstress.statistics.units import NS_PER_MS, finite
from sqlstress.target import DEFAULT

_LONGEST = 200


def case_names(report: Report) -> tuple[str, ...]:
    """Return a unique name for each case of a report: its label, and options that are not the default.

    Options that only affect the precision of figures (window, trials, seed, verification) are left out.
    """
    seen: Counter[str] = Counter()
    names = []
    for run in report.runs:
        arm = f"{run.arm}, " if run.arm else ""
        name = clean(
            ", ".join((f"{arm}{run.case.workload}: {case_label(run.case)}", *_changed_options(run.case)))
        )[:_LONGEST]
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


def surroundings(environment: Environment) -> str:
    """Return the operating system and the processor architecture: "Linux x86_64"."""
    return clean(f"{environment.host.system} {environment.host.machine}") or "unknown system"


def _changed_options(case: Case) -> Iterator[str]:
    """Yield a text such as "driver=apsw" for each option of a case that differs from its default."""
    if case.driver != DEFAULT:
        yield f"driver={case.driver}"
    if case.ops is not None:
        yield f"ops={case.ops}"
    if case.arrivals is not None:
        yield from _changed_fields(case.arrivals, ())
    spec, experiment = case.spec, experiment_of(case)
    settings = [*_changed_fields(case.settings, ())]
    parts = [field.name for field in fields(spec) if is_dataclass(getattr(spec, field.name))]
    of_spec = [*_changed_fields(spec, {*experiment.label_fields, *parts})]
    # Trackers identify a case by its name, so the order of the options must never change.
    yield from (*of_spec, *settings) if experiment.sweeps else (*settings, *of_spec)
    for part in parts:
        yield from _changed_fields(getattr(spec, part), experiment.label_fields)


def _changed_fields(part: Any, excluded: Collection[str]) -> Iterator[str]:
    """Yield "page-size=512" and so on: fields of `part` that are not the default and not in `excluded`."""
    for field in fields(part):
        value = getattr(part, field.name)
        if field.default is MISSING or value == field.default or field.name in excluded:
            continue
        if field.name == "pragmas":
            yield from (f"{name}={setting}" for name, setting in value)
        else:
            switches = {True: "on", False: "off", None: "unset"}
            written = switches[value] if value is None or isinstance(value, bool) else str(value)
            yield f"{field.name.replace('_', '-')}={written}"


THROUGHPUT, LATENCY = "throughput", "latency"
"""Kinds of tracked figures: rates per second, and p99 latencies."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Figure of a case, with its values in the valid trials."""

    name: str
    """Name by which a tracker recognises the figure."""
    what: str
    """THROUGHPUT, or LATENCY (the 99th percentile of a kind of operation)."""
    unit: str
    """Unit in which the figure is shown, such as "transactions/s" or "ms"."""
    trials: int
    """Number of valid trials."""
    values: tuple[float, ...]
    """Values in the trials that have the figure, in ascending order; latencies are in ns."""

    @property
    def differs(self) -> bool:
        """Whether the values differ. If so, the tracker gets their range in addition to the median."""
        return self.values[0] < self.values[-1]


def _measures(reports: Iterable[Report]) -> Iterator[Measure]:
    """Yield the throughput and the latencies of each case without wrong data."""
    for report in reports:
        where = surroundings(report.environment)
        for run, case_name in zip(report.runs, case_names(report), strict=True):
            if run.verdict.status == "failed":
                continue
            name, presenter = f"{case_name} ({where})", presenter_of(run.case)
            if valid_values := _valid_values(presenter.tracked_rates(run)):
                unit = f"{presenter.tracked_unit(run.case)}/s"
                yield Measure(name, THROUGHPUT, unit, len(run.valid), valid_values)
            for kind in sorted({kind for trial in run.valid for kind in trial.latency}):
                if valid_values := _valid_values(
                    trial.latency[kind].p99_ns for trial in run.valid if kind in trial.latency
                ):
                    yield Measure(f"{name}: {clean(kind)} p99", LATENCY, "ms", len(run.valid), valid_values)


def _valid_values(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(sorted(value for value in map(finite, values) if value is not None))


def throughput_json(*reports: Report) -> str:
    """Return throughputs as JSON for github-action-benchmark, `tool: customBiggerIsBetter`."""
    return _action_json(reports, THROUGHPUT, 1.0)


def latency_json(*reports: Report) -> str:
    """Return p99 latencies as JSON for github-action-benchmark, `tool: customSmallerIsBetter`."""
    return _action_json(reports, LATENCY, NS_PER_MS)


def _action_json(reports: Sequence[Report], what: str, divisor: float) -> str:
    entries = []
    for measure in _measures(reports):
        if measure.what != what:
            continue
        value = median(measure.values) / divisor
        entry: dict[str, Any] = {"name": measure.name, "unit": measure.unit, "value": value}
        if measure.differs:
            entry["range"] = f"{measure.values[0] / divisor:.6g} to {measure.values[-1] / divisor:.6g}"
        entry["extra"] = f"median of {measure.trials} trials" if measure.trials > 1 else "1 trial"
        entries.append(entry)
    return json.dumps(entries, indent=1, allow_nan=False) + "\n"


def bencher_json(*reports: Report) -> str:
    """Return throughputs, and p99 latencies in ns, as JSON for Bencher."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for measure in _measures(reports):
        metric = {"value": median(measure.values)}
        if measure.differs:
            metric |= {"lower_value": measure.values[0], "upper_value": measure.values[-1]}
        benchmarks.setdefault(measure.name, {})[measure.what] = metric
    return json.dumps(benchmarks, indent=1, allow_nan=False) + "\n"
