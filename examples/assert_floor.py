"""Fail a CI job if a case of a JSON report is not verified, or misses a floor.

    python examples/assert_floor.py report.json --tps 200 --p99-ms 1000

A floor catches a collapse, not a regression of some per cent: hosted machines differ by more than
that from one hour to the next. Set it to a fraction of what you measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any


def complaints(run: dict[str, Any], tps: float, p99_ms: float) -> Iterator[str]:
    """Yield the problems of a case."""
    for trial in run["trials"]:
        for check in trial["verdict"]["checks"]:
            if check["status"] != "ok":
                examples = "; ".join(check["counterexamples"]) or check["note"]
                yield f"{check['name']} is {check['status']}: {examples}"
    valid = [trial for trial in run["trials"] if trial["error"] is None]
    if run["error"] or not valid:
        yield f"not wholly measured: {run['error']}"
        return
    found = median(trial["tps"] for trial in valid)
    if found < tps:
        yield f"{found:,.0f} TPS, less than {tps:,.0f}"
    slowest = [
        trial["latency"]["replace"]["p99_ns"] / 1e6 for trial in valid if "replace" in trial["latency"]
    ]
    if slowest and median(slowest) > p99_ms:
        yield f"replace p99 {median(slowest):,.1f} ms, more than {p99_ms:,.1f} ms"


def report_complaints(report: dict[str, Any], tps: float, p99_ms: float) -> Iterator[str]:
    """Yield the problems of a report."""
    if len(report["runs"]) < report["planned"]:
        yield f"only {len(report['runs'])} of {report['planned']} cases were measured"
    for number, run in enumerate(report["runs"], 1):
        case = run["case"]
        for text in complaints(run, tps, p99_ms):
            yield f"case {number} ({case['concurrency']} processes, {case['buckets']} buckets): {text}"


def main() -> int:
    """Judge the report of the command line; return the exit code."""
    parser = argparse.ArgumentParser(description="Fail when a case is not proved, or misses a floor.")
    parser.add_argument("report", type=Path)
    parser.add_argument("--tps", type=float, default=0.0, help="transactions a second, at least")
    parser.add_argument("--p99-ms", type=float, default=float("inf"), help="99th percentile of replaces")
    given = parser.parse_args()
    report = json.loads(given.report.read_text(encoding="utf-8"))
    found = list(report_complaints(report, given.tps, given.p99_ms))
    for text in found:
        print(text, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
