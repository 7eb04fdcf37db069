"""Reports of many hosts, made of a real one: only its rates and its sync's cost are changed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from benchmarks.loops import CHECKOUT

REAL = CHECKOUT / "reports" / "linux-20-files.json"


def simulate(folder: Path, count: int) -> Path:
    """Write so many reports into a folder, each of a host of its own."""
    folder.mkdir(parents=True)
    host, random = json.loads(REAL.read_text(encoding="utf-8")), Random(1)
    sync, trials = host["environment"]["sync"], [trial for run in host["runs"] for trial in run["trials"]]
    cost, rates = sync["overwrite_p50_ns"], [trial["tps"] for trial in trials]
    for number in range(count):
        factor = random.lognormvariate(0, 0.4)
        host["created"] = f"2026-01-01T00:00:00.{number:06}+00:00"
        sync["overwrite_p50_ns"] = int(cost / factor)
        for trial, rate in zip(trials, rates, strict=True):
            trial["tps"] = rate * factor * random.lognormvariate(0, 0.05)
        (folder / f"host{number:05}.json").write_text(json.dumps(host), encoding="utf-8")
    return folder
