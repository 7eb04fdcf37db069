"""Are my settings good enough? Copy this into the tests of your own project, and change the constants.

    python -m pytest examples/test_my_settings.py

SETTINGS and PROCESSES are those of your application; the bounds are what you promise. It measures one
process and then all of them, on the disk of the current folder: a floor in transactions a second would be
one for a machine, but what several processes get relative to one is a property of the settings.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

SETTINGS = [
    *("--journal-mode", "wal", "--synchronous", "normal"),
    *("--cache-size", "-20000", "--pragma", "foreign_keys=on"),
    *("--busy-timeout", "5s"),
]
LOAD = ["--read-ratio", "0.8", "--value-size", "200", "--key-space", "20000"]
PROCESSES = 4
MEASURED = ["--repeat", "3", "--duration", "500ms", "--warmup", "200ms"]

LEAST_OF_ONE = 0.2
"""All processes together get at least this share of what one gets alone."""
LEAST_FAIRNESS = 0.7
"""Jain's index: 1 when all get the same, 1/4 when one of four gets everything."""
MOST_P99_MS = 250
"""Maximum of the 99th percentile of the writes' latency, in ms."""

Run = dict[str, Any]


def measured(report: Path) -> dict[int, Run]:
    """Measure one process, then all processes; return {number of processes: run}."""
    counts = ["--concurrency", f"1,{PROCESSES}"]
    words = [*counts, *SETTINGS, *LOAD, *MEASURED, "--quiet", "-o", str(report)]
    done = subprocess.run([sys.executable, "-m", "sqlstress", *words], capture_output=True, text=True)
    # Exit code 1 means wrong data; the message below is better.
    assert done.returncode in (0, 1), done.stderr
    found: list[Run] = json.loads(report.read_text(encoding="utf-8"))["runs"]
    return {run["case"]["concurrency"]: run for run in found}


def typical(run: Run, figure: str) -> float:
    """Return the median of a figure over the trials of a run."""
    return float(median(trial[figure] for trial in run["trials"]))


def complaints(runs: dict[int, Run]) -> Iterator[str]:
    """Yield the limits that the settings miss."""
    alone, together = runs[1], runs[PROCESSES]
    for trial in (*alone["trials"], *together["trials"]):
        for check in trial["verdict"]["checks"]:
            if check["status"] != "ok":
                yield f"{check['name']} is {check['status']}: {check['counterexamples']}"
        if trial["failed"]:
            yield f"{trial['failed']} operations were given up after the busy timeout"
    if (tps := typical(together, "tps")) < LEAST_OF_ONE * (one := typical(alone, "tps")):
        yield f"{PROCESSES} processes reach {tps:,.0f} TPS together, one alone {one:,.0f}"
    if (fairness := typical(together, "fairness")) < LEAST_FAIRNESS:
        yield f"a process starves: Jain's index is {fairness:.2f}"
    if (
        p99 := median(trial["latency"]["replace"]["p99_ns"] for trial in together["trials"]) / 1e6
    ) > MOST_P99_MS:
        yield f"the p99 of writes is {p99:.1f} ms"


def test_my_settings_hold_what_i_promise(tmp_path: Path) -> None:
    # One test, so that nothing is measured while something else is, whatever runs tests side by side.
    assert list(complaints(measured(tmp_path / "report.json"))) == []
