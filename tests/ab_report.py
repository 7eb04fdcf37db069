"""A/B tests with given ratios, evaluated as the study evaluates its pairs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from sqlstress.analysis.ab import look
from sqlstress.report import AbTest, Arm, Latency, Report, Run, Trial
from sqlstress.report.case import Case, Settings
from sqlstress.report.study_results import DRAWN
from sqlstress.statistics.sequential import INCONCLUSIVE, UNDECIDED, InterimLook
from tests.example_report import example_report

EXAMPLE = example_report()
TRIAL = EXAMPLE.runs[1].trials[0]
TEST = AbTest(
    "tps",
    0.1,
    (Arm("A", ("--synchronous", "full")), Arm("B", ("--synchronous", "normal"))),
    first="A",
    order=DRAWN,
    max_pairs=200,
    max_time_s=900.0,
)
PAIR_S = 5.6
"""Duration of a pair, in seconds."""
CASE = Case(concurrency=2, duration_s=2.0, seed=7)


def trial(pair: int, ratio: float = 1.0, level: str = "full") -> Trial:
    """Return the example's trial with its TPS multiplied and its latencies divided by `ratio`."""
    latency = {kind: _shorter(each, ratio) for kind, each in TRIAL.latency.items()}
    effective = {**TRIAL.effective, "synchronous": level}
    return replace(TRIAL, index=pair, tps=TRIAL.tps * ratio, latency=latency, effective=effective)


def _shorter(latency: Latency, ratio: float) -> Latency:
    # 128 buckets double a latency.
    shift = round(128 * math.log2(ratio))
    return replace(latency, buckets=tuple((index - shift, count) for index, count in latency.buckets))


def around(ratio: float, pairs: int, spread: float = 0.03) -> list[float]:
    """Return `pairs` ratios, evenly spread around `ratio`, in a fixed mixed order."""
    places = Random(7).sample(range(pairs), pairs)
    return [ratio * math.exp(spread * (2 * place / max(1, pairs - 1) - 1)) for place in places]


Script = Callable[[int, Case, int], Trial]
"""Function that returns the trial of an arm, a case and a pair."""


def script_of_ratio(ratio: float, spread: float = 0.03) -> Script:
    """Return a script in which B is `ratio` times as fast as A, within `spread`."""
    ratios = around(ratio, 30, spread)
    return lambda arm, case, pair: trial(pair, ratios[pair] if arm else 1.0)


def ab_report(cells: Sequence[Sequence[float]], test: AbTest = TEST, decided: bool = True) -> Report:
    """Return a report whose cells, of 2, 4, 6, ... processes, have pairs with these ratios of B to A.

    If it is decided, it has one interim look, at the end.
    """
    runs = []
    for place, ratios in enumerate(cells):
        case = replace(CASE, concurrency=2 * (place + 1))
        lax = replace(case, settings=Settings(synchronous="normal"))
        a, b = (
            tuple(trial(pair, each, level) for pair, each in enumerate(own))
            for own, level in (([1.0] * len(ratios), "full"), (ratios, "normal"))
        )
        runs += [Run(case, a, arm="A"), Run(lax, b, arm="B")]
    report = replace(EXAMPLE, runs=tuple(runs), planned=len(runs), ab=test, command=("sqlstress", "ab"))
    if not decided:
        return report
    pairs = len(cells[0])
    found = replace(look(report, test, InterimLook(pairs, 0.001)), seconds=PAIR_S * pairs)
    if found.verdict == UNDECIDED:
        found = replace(found, verdict=INCONCLUSIVE)
    return replace(report, ab=replace(test, looks=(found,), verdict=found.verdict))
