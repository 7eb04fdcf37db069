"""Print the slow end of a saved report: for each case the percentiles of its writes, the worst first.

    python examples/slowest_writes.py reports/linux-1-and-20-files.json

It needs no SQLite: a report is read wherever Python runs.
"""

from __future__ import annotations

import sys

import sqlstress


def milliseconds(ns: float | None) -> str:
    """Write a latency; a dash where there are too few operations for it."""
    return "-" if ns is None else f"{ns / 1e6:.3f} ms"


def main(path: str) -> int:
    """Print the report's figures; return the exit code."""
    try:
        report = sqlstress.read(path)
    except sqlstress.UsageError as error:
        print(error, file=sys.stderr)
        return 2
    written = [
        (figure.latency["replace"], figure) for figure in report.figures if "replace" in figure.latency
    ]
    for latency, figure in sorted(written, key=lambda one: one[0].p99_ns or 0.0, reverse=True):
        p99, p999 = milliseconds(latency.p99_ns), milliseconds(latency.p999_ns)
        print(f"{figure.label}: p99 {p99}, p99.9 {p999}, slowest {milliseconds(latency.max_ns)}")
    for finding in report.findings:
        if finding.code == "starvation":
            print(finding.text)
    return report.exit_code


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} REPORT.json")
    sys.exit(main(sys.argv[1]))
