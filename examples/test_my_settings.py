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
from statistics import median
from typing import Any

import pytest

SETTINGS = [
    *("--journal-mode", "wal", "--synchronous", "normal"),
    *("--cache-size", "-20000", "--pragma", "foreign_keys=on"),
    *("--busy", "fair", "--busy-timeout", "5s"),
]
LOAD = ["--read-ratio", "0.8", "--value-size", "200", "--key-space", "20000"]
PROCESSES = 4
MEASURED = ["--repeat", "3", "--duration", "500ms", "--warmup", "200ms"]

LEAST_OF_ONE = 0.2
"""All processes together get at least this share of what one gets alone."""
LEAST_FAIRNESS = 0.7
"""Jain's index: 1 when all get the same, 1/4 when one of four gets everything."""
MOST_P99_MS = 250
"""So long, at most, do 99% of the writes take."""

Run = dict[str, Any]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Run]:
    """Measure one process and all of them; return {number of processes: what was measured}."""
    report = tmp_path_factory.mktemp("stress") / "report.json"
    counts = ["--concurrency", f"1,{PROCESSES}"]
    words = [*counts, *SETTINGS, *LOAD, *MEASURED, "--quiet", "-o", str(report)]
    done = subprocess.run([sys.executable, "-m", "sqlstress", *words], capture_output=True, text=True)
    # 1: the data was found wrong, which a test below tells better.
    assert done.returncode in (0, 1), done.stderr
    found: list[Run] = json.loads(report.read_text(encoding="utf-8"))["runs"]
    return {run["case"]["concurrency"]: run for run in found}


def typical(run: Run, figure: str) -> float:
    """Return the median of a figure over the trials of a run."""
    return float(median(trial[figure] for trial in run["trials"]))


def test_no_write_is_lost(runs: dict[int, Run]) -> None:
    checks = [
        check for run in runs.values() for trial in run["trials"] for check in trial["verdict"]["checks"]
    ]
    assert [check for check in checks if check["status"] != "ok"] == []


def test_several_processes_get_enough_of_what_one_gets(runs: dict[int, Run]) -> None:
    alone, together = typical(runs[1], "tps"), typical(runs[PROCESSES], "tps")
    assert together >= LEAST_OF_ONE * alone, f"{together:,.0f} TPS together, {alone:,.0f} alone"


def test_no_process_starves(runs: dict[int, Run]) -> None:
    assert typical(runs[PROCESSES], "fairness") >= LEAST_FAIRNESS
    assert sum(trial["failed"] for trial in runs[PROCESSES]["trials"]) == 0, "given up after the time-out"


def test_writes_are_quick_enough(runs: dict[int, Run]) -> None:
    p99 = median(trial["latency"]["replace"]["p99_ns"] for trial in runs[PROCESSES]["trials"]) / 1e6
    assert p99 <= MOST_P99_MS, f"p99 is {p99:.1f} ms"
