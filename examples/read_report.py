"""Print a line for each case of a JSON report. Needs nothing but Python.

python examples/read_report.py report.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

WORST_FIRST = ("failed", "unknown", "ok", "skipped")


def verdict(run: dict[str, Any]) -> str:
    """Return the worst status of all checks of a case."""
    found = {check["status"] for trial in run["trials"] for check in trial["verdict"]["checks"]}
    return next((status for status in WORST_FIRST if status in found), "skipped")


def line(run: dict[str, Any]) -> str:
    """Return a line on a case and its results: medians of its valid trials."""
    case = run["case"]
    buckets, processes = case["buckets"], case["concurrency"]
    valid = [trial for trial in run["trials"] if trial["error"] is None]
    if not valid:
        return f"buckets={buckets} processes={processes}: not measured: {run['error']}"
    synchronous = valid[0]["effective"].get("synchronous", "unknown")
    tps = median(trial["tps"] for trial in valid)
    p99s = [trial["latency"]["replace"]["p99_ns"] for trial in valid if "replace" in trial["latency"]]
    p99 = f"replace p99 {median(p99s) / 1e6:.3f} ms, " if p99s else ""
    return (
        f"buckets={buckets} processes={processes} synchronous={synchronous}: "
        f"{tps:,.0f} {case_unit(case)}s per second, {p99}verified: {verdict(run)}"
    )


def case_unit(case: dict[str, Any]) -> str:
    """Return the counted unit: the published script counts a set and a get together."""
    return "pair" if case["workload"] == "classic" else "transaction"


def main(path: Path) -> int:
    """Print the report; return the exit code."""
    report = json.loads(path.read_text(encoding="utf-8"))
    if report["format_version"].split(".")[0] != "1":
        print(f"{path} has format {report['format_version']}; this script reads 1.x", file=sys.stderr)
        return 2
    for run in report["runs"]:
        print(line(run))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} REPORT.json")
    sys.exit(main(Path(sys.argv[1])))
