"""Do two runs of one command contradict each other in what they conclude?

    python -m benchmarks.contradictions --runs 20 --load 0 --output quiet.json -- -c 1-4 -b 1,20
    python -m benchmarks.contradictions --show quiet.json loaded.json

A conclusion is what a report says of the best case, of where the total of a layout stops rising, and of one
layout beside another. Each two runs are compared in each of them. They contradict each other

- best: if no case is named by both among those that can't be told from the best;
- scaling: if one says that more than n processes gained something, the other that fewer than n are enough;
- layouts: if one says more and the other less, or the one about equal and the other more than 10 % apart.

`--load N` keeps N processors busy by turns meanwhile, 0.1 to 3 s at a time, as a machine's other users do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.busy import beside
from benchmarks.document import CHECKOUT
from sqlstress.analysis.answers import leaders
from sqlstress.analysis.group import EQUAL, by_files, group_runs
from sqlstress.analysis.scaling import Curve
from sqlstress.report import Report, from_json

Claims = dict[str, Any]
"""What a run concludes, by what it is about: sets and numbers, as JSON has them."""


def claims(report: Report) -> Claims:
    """Return what a report of one table concludes."""
    (group,) = group_runs(report.runs)
    runs = [run for run in group.runs if group.is_believed(run)]
    tested = group.tested(runs)
    if tested is None:
        return {}
    first = leaders(tested, runs).runs
    found: Claims = {"best": [[run.case.buckets, run.case.concurrency] for run in first]}
    by_layout = by_files(runs, lambda run: run.case.buckets)
    layouts = {layout: Curve(tested, own, len(by_layout)) for layout, own in by_layout.items()}
    for layout, curve in layouts.items():
        if len(curve.runs) > 1:
            most = curve.runs[-1]
            found[f"scaling on {layout}"] = {
                "gains until": curve.less[-1].case.concurrency if curve.less else 0,
                "enough": None if curve.enough is most else curve.enough.case.concurrency,
                "most": most.case.concurrency,
            }
    (_, base), *others = layouts.items()
    for layout, curve in others:
        ratio = tested.beside(base.runs[-1], curve.runs[-1])
        if ratio:
            found[f"{layout} files beside 1"] = [ratio.low, ratio.high]
    return found


def contradict(about: str, one: Any, other: Any) -> bool:
    """Say whether two conclusions can't both be true."""
    if about == "best":
        return not {tuple(case) for case in one} & {tuple(case) for case in other}
    if about.startswith("scaling"):
        return any(
            mine["enough"] is not None and theirs["gains until"] > mine["enough"]
            for mine, theirs in ((one, other), (other, one))
        )
    apart = one[0] > other[1] or other[0] > one[1]
    return apart and _word(one) != _word(other)


def cannot_tell(about: str, claim: Any) -> bool:
    """Say whether a conclusion is that nothing can be told."""
    if about == "best":
        return len(claim) > 1
    if about.startswith("scaling"):
        return claim["enough"] is None and not claim["gains until"]
    return _word(claim) == "can't tell"


def _word(interval: Sequence[float]) -> str:
    low, high = interval
    if low > 1 - EQUAL and high < 1 / (1 - EQUAL):
        return "about equal"
    return "more" if low > 1 else "less" if high < 1 else "can't tell"


def summary(found: Sequence[Claims]) -> dict[str, dict[str, float]]:
    """Return, by what is concluded, how many pairs of runs contradict each other, and how many can't tell."""
    told: dict[str, dict[str, float]] = {}
    for about in dict.fromkeys(name for one in found for name in one):
        own = [one[about] for one in found if about in one]
        pairs = list(combinations(own, 2))
        told[about] = {
            "runs": len(own),
            "pairs": len(pairs),
            "contradictory": sum(contradict(about, *pair) for pair in pairs),
            "unclear": sum(cannot_tell(about, claim) for claim in own),
        }
    return told


def measure(arguments: Sequence[str]) -> tuple[Claims, float]:
    """Run the command once; return what it concluded, and how much of the processors others took at most."""
    with TemporaryDirectory() as own:
        file = Path(own) / "report.json"
        command = [sys.executable, "-m", "sqlstress", "kv", *arguments, "--quiet", "-o", f"json:{file}"]
        subprocess.run(command, cwd=CHECKOUT, check=True)
        report = from_json(file.read_text(encoding="utf-8"))
    trials = [trial for run in report.runs for trial in run.valid]
    return claims(report), max((trial.foreign_share or 0.0 for trial in trials), default=0.0)


def show(file: Path) -> str:
    """Return what a series says, as a table."""
    series = json.loads(file.read_text(encoding="utf-8"))
    told = summary([one["claims"] for one in series["runs"]])
    rows = [
        f"| {about} | {one['runs']} | {one['pairs']} | {one['contradictory']} | {one['unclear']} |"
        for about, one in told.items()
    ]
    pairs, wrong = (sum(one[name] for one in told.values()) for name in ("pairs", "contradictory"))
    foreign = sorted(one["foreign"] for one in series["runs"])
    return "\n".join(
        (
            f"`sqlstress {' '.join(series['arguments'])}`, {series['load']} processors kept busy; others",
            f"took up to {foreign[len(foreign) // 2]:.0%} of the processors in the median run.",
            "",
            "| conclusion | runs | pairs of runs | contradictory | runs that can't tell |",
            "|---|---|---|---|---|",
            *rows,
            f"| together | | {pairs} | {wrong} ({wrong / max(1, pairs):.1%}) | |",
        )
    )


def main(given: Sequence[str]) -> None:
    """Measure a series, each run saved as it comes, or go on with one that was stopped; or show some."""
    parser = argparse.ArgumentParser(description="Do runs of one command contradict each other?")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--show", type=Path, nargs="+")
    parser.add_argument("arguments", nargs="*")
    asked = parser.parse_args(given)
    for file in asked.show or ():
        print(show(file), end="\n\n")
    if not asked.output:
        return
    series = {"arguments": asked.arguments, "load": asked.load, "runs": []}
    if asked.output.is_file():
        series = json.loads(asked.output.read_text(encoding="utf-8"))
    with beside(series["load"], by_turns=True):
        while len(series["runs"]) < asked.runs:
            found, foreign = measure(series["arguments"])
            series["runs"].append({"claims": found, "foreign": foreign})
            asked.output.write_text(json.dumps(series, indent=1) + "\n", encoding="utf-8")
    print(show(asked.output))


if __name__ == "__main__":
    main(sys.argv[1:])
