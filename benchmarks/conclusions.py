"""Thousands of made-up sweeps of 1 to 8 processes: how often a report says what is wrong, or can't tell.

    python -m benchmarks.conclusions --passes 10 --runs 1000

The tests of a report, on the noises of the gate and two more, in the order of a sweep: of eight
cases that are all alike, and of a curve that rises, flattens and falls.

- wrong: of 20 reports one may be. It leaves out the best, names a rise or a fall where
  there is none, or an end of the rise where more processes gain 10 % or more;
- contradictory: pairs of reports, as in `benchmarks.contradictions`;
- at most 3: reports of the curve that name three cases or fewer as the best.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from tabulate import tabulate

from benchmarks.contradictions import Claims, cannot_tell, contradict
from benchmarks.gate.simulated import NOISES, Noise, white
from sqlstress.analysis.answers import leaders
from sqlstress.analysis.group import ERROR, Tested
from sqlstress.analysis.scaling import Curve
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.studies.sweep import turns

CURVE = (8.0, 15.0, 20.0, 22.0, 24.0, 26.0, 23.0, 21.0)
ALIKE = (20.0,) * len(CURVE)
HEADERS = (
    "noise",
    "wrong: alike",
    "wrong: curve",
    "contradictory",
    "best: at most 3",
    "best: median",
    "can't tell",
)


def _ten(draw: Random) -> Iterator[float]:
    return white(draw, 0.1)


SLICES = (*NOISES, Noise("ten", "slices vary by 10 %", _ten))


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a made-up sweep says."""

    claims: Claims
    wrong: bool


def swept(noise: Noise, truth: Sequence[float], passes: int, draw: Random, uneven: bool = False) -> Sweep:
    """Return what is said of a sweep; `uneven`: the noise of a case grows with its processes."""
    cases = [
        Case(concurrency=place, repeat=passes, seed=draw.getrandbits(30))
        for place in range(1, len(truth) + 1)
    ]
    figures: list[dict[int, float]] = [{} for _ in cases]
    for turn, slow in zip(turns(cases), noise.slices(draw), strict=False):
        share = (turn.case + 1) / len(cases) * 1.5 if uneven else 1.0
        figures[turn.case][turn.number] = truth[turn.case] * math.exp(share * slow)
    runs = [Run(case) for case in cases]
    tested = Tested(runs, figures, ERROR)
    lead, curve = leaders(tested, runs), Curve(tested, runs, 1)
    processes = [run.case.concurrency for run in lead.runs]
    enough = curve.enough.case.concurrency
    claims: Claims = {
        "best": [[1, each] for each in processes],
        "scaling on 1": {
            "gains until": curve.less[-1].case.concurrency if curve.less else 0,
            "enough": None if enough == len(truth) else enough,
            "most": len(truth),
        },
    }
    said = curve.scaling()
    # Of several that are the best any may be left out but one: it must not matter which.
    best = max(range(len(truth)), key=lambda place: (truth[place], place == len(truth) // 2))
    wrong = best + 1 not in processes
    wrong |= any(truth[place] >= max(truth[place + 1 :]) for place in range(len(curve.less)))
    wrong |= enough < len(truth) and max(truth[enough:]) / truth[enough - 1] >= 1 / 0.9
    fallen = said.facts.get("most") if said.code == "plateau" else None
    wrong |= fallen is not None and truth[fallen - 1] >= max(truth)
    return Sweep(claims, bool(wrong))


def row(noise: Noise, passes: int, runs: int, uneven: bool = False) -> list[str]:
    """Return a row of the table."""
    alike = [swept(noise, ALIKE, passes, Random(f"alike {n}"), uneven) for n in range(runs)]
    curve = [swept(noise, CURVE, passes, Random(f"curve {n}"), uneven) for n in range(runs)]
    pairs = [(one.claims, other.claims) for one, other in pairwise(curve)]
    against = sum(any(contradict(about, one[about], other[about]) for about in one) for one, other in pairs)
    sizes = sorted(len(one.claims["best"]) for one in curve)
    unclear = sum(cannot_tell("scaling on 1", one.claims["scaling on 1"]) for one in curve)
    return [
        f"{noise.name}, more of it with more processes" if uneven else noise.name,
        f"{sum(one.wrong for one in alike) / runs:.1%}",
        f"{sum(one.wrong for one in curve) / runs:.1%}",
        f"{against / len(pairs):.1%}",
        f"{sum(size <= 3 for size in sizes) / runs:.0%}",
        str(sizes[runs // 2]),
        f"{unclear / runs:.0%}",
    ]


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="How often is a report wrong?")
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=500)
    asked = parser.parse_args(given)
    rows = [row(noise, asked.passes, asked.runs) for noise in SLICES]
    rows.append(row(SLICES[1], asked.passes, asked.runs, uneven=True))
    print(f"{asked.passes} passes, {asked.runs} reports a row\n")
    print(tabulate(rows, HEADERS, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main(sys.argv[1:])
