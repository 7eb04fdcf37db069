"""Runs over several passes, made of runs with one trial each, or none."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from sqlstress.report import Run, Trial


def several(run: Run, noise: float = 0.01, count: int = 5, seed: str = "") -> Run:
    """Return a run over an odd number of passes, whose median is its trial; `noise` is a step between two."""
    steps = [place - (count - 1) / 2 for place in range(count)]
    Random(f"{run.case.label}{run.case.driver}{seed}").shuffle(steps)
    trials = (
        _slower(trial, index, math.exp(noise * step))
        for trial in run.trials
        for index, step in enumerate(steps)
    )
    return replace(run, case=replace(run.case, repeat=count), trials=tuple(trials))


def noisy(run: Run, noise: float, draw: Random, count: int = 5) -> Run:
    """Return a run over passes with noise that is drawn, as it is found in nature."""
    (trial,) = run.trials
    trials = (_slower(trial, index, math.exp(draw.gauss(0, noise))) for index in range(count))
    return replace(run, case=replace(run.case, repeat=count), trials=tuple(trials))


def _slower(trial: Trial, index: int, times: float) -> Trial:
    return replace(
        trial,
        index=index,
        seconds=trial.seconds * times,
        tps=trial.tps / times,
        rows_per_s=trial.rows_per_s / times,
        series=tuple(
            replace(one, values=tuple(int(value * times) for value in one.values))
            if one.unit == "ns"
            else one
            for one in trial.series
        ),
    )
