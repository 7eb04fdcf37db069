"""Figures for github-action-benchmark: two files, since it has one direction for all figures of a file.

Format: https://github.com/benchmark-action/github-action-benchmark, "customBiggerIsBetter" and
"customSmallerIsBetter".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlstress.display.clean import clean
from sqlstress.render.ci.measures import Measure, kinds, p99_ns, throughput, unit
from sqlstress.render.ci.names import case_names, surroundings
from sqlstress.report import Report, Run
from sqlstress.statistics.units import NS_PER_MS


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
