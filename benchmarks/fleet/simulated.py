"""Reports of many hosts, made of a real one: only its rates and its sync's cost are changed."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from random import Random

from benchmarks.loops import CHECKOUT

REAL = CHECKOUT / "reports" / "linux-20-files.json"


def simulate(folder: Path, count: int) -> Path:
    """Write so many reports into a folder, each of a host of its own."""
    folder.mkdir(parents=True)
    plain, random = json.loads(REAL.read_text(encoding="utf-8")), Random(1)
    for number in range(count):
        host = deepcopy(plain)
        factor = random.lognormvariate(0, 0.4)
        host["created"] = f"2026-01-01T00:00:00.{number:06}+00:00"
        for name in ("append_p50_ns", "overwrite_p50_ns"):
            host["environment"]["sync"][name] = int(host["environment"]["sync"][name] / factor)
        for run in host["runs"]:
            for trial in run["trials"]:
                trial["tps"] *= factor * random.lognormvariate(0, 0.05)
        (folder / f"host{number:05}.json").write_text(json.dumps(host, indent=1), encoding="utf-8")
    return folder
