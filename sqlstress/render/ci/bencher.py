"""Figures in the Bencher Metric Format: throughput in transactions a second, latency in ns.

Format: https://bencher.dev/docs/reference/bencher-metric-format/
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from sqlstress.display.clean import clean
from sqlstress.render.ci.measures import Measure, kinds, p99_ns, throughput
from sqlstress.render.ci.names import case_names, surroundings
from sqlstress.report import Report

Metric = dict[str, float]


def bencher_json(*reports: Report) -> str:
    """Return the throughput of each case, and beside it the 99th percentile of each kind of operation."""
    benchmarks: dict[str, dict[str, Metric]] = {}
    for report in reports:
        for name, measure, metric in _metrics(report):
            benchmarks.setdefault(name, {})[measure] = metric
    return json.dumps(benchmarks, indent=1, allow_nan=False) + "\n"


def _metrics(report: Report) -> Iterator[tuple[str, str, Metric]]:
    where = surroundings(report.environment)
    for run, case in zip(report.runs, case_names(report), strict=True):
        name = f"{case} ({where})"
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
