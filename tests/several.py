"""Runs over several passes, made from runs with at most one trial, and their findings."""

import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import group_runs
from sqlstress.experiment import case_label
from sqlstress.report import Run, Trial
from sqlstress.show.blocks import Table
from sqlstress.show.shown import presenter_of


def with_trials(run: Run, **fields: Any) -> Run:
    """Return a run with fields of every trial changed."""
    return replace(run, trials=tuple(replace(trial, **fields) for trial in run.trials))


def several(run: Run, noise: float = 0.01, count: int = 5, seed: str = "") -> Run:
    """Return a run over an odd number of passes around its trial; `noise` is the step between two."""
    steps = [place - (count - 1) / 2 for place in range(count)]
    Random(f"{case_label(run.case)}{run.case.driver}{seed}").shuffle(steps)
    trials = (
        _slower(trial, index, math.exp(noise * step))
        for trial in run.trials
        for index, step in enumerate(steps)
    )
    return replace(run, case=replace(run.case, repeat=count), trials=tuple(trials))


def noisy(run: Run, noise: float, draw: Random, count: int = 5) -> Run:
    """Return a run over passes with random noise, as on a real machine."""
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
            replace(series, values=tuple(int(value * times) for value in series.values))
            if series.unit == "ns"
            else series
            for series in trial.series
        ),
    )


def findings(*runs: Run, noise: float | None = None) -> dict[str, list[Finding]]:
    """Return the findings on these runs of one group, by code; with `noise`, over five passes each."""
    (group,) = group_runs(runs if noise is None else [several(run, noise) for run in runs])
    by_code: dict[str, list[Finding]] = {}
    for finding in advise_group(group):
        by_code.setdefault(finding.code, []).append(finding)
    return by_code


def facts(*runs: Run, noise: float | None = None) -> dict[str, Mapping[str, Any]]:
    """Return the facts of the last finding of each code."""
    return {code: every[-1].facts for code, every in findings(*runs, noise=noise).items()}


def sentences(*runs: Run, noise: float | None = None) -> dict[str, str]:
    """Return the sentence of the last finding of each code."""
    return {code: (every[-1]).text for code, every in findings(*runs, noise=noise).items()}


def tables(*runs: Run) -> list[Table]:
    """Return the tables of these runs, which are one group."""
    (group,) = group_runs(runs)
    return [block for block in presenter_of(group.case).blocks(group) if isinstance(block, Table)]


def column(table: Table, name: str) -> list[str]:
    """Return the cells of a column."""
    return [row[table.headers.index(name)] for row in table.rows]
