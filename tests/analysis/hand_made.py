"""Small hand-made reports: a run in a line, everything else as in the example report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, group_runs, merge_groups
from sqlstress.report import Check, Run, Trial, Verdict
from sqlstress.report.case import Case
from tests.example_report import example_report

EXAMPLE = example_report()
CALM = replace(
    EXAMPLE.runs[0].trials[0],
    workers=EXAMPLE.runs[0].trials[0].workers,
    fairness=1.0,
    longest_wait_ns=5_000_000,
    verdict=Verdict((Check("last write", "ok", checked=100_000),)),
)
"""A trial that causes no finding."""


def trial(tps: float = 1000.0, **fields: Any) -> Trial:
    """Return a calm trial with these changes."""
    return replace(CALM, tps=tps, **fields)


def run(files: int, processes: int, *trials: Trial, case: Case | None = None, **fields: Any) -> Run:
    """Return a run of these trials; by default, of a single calm trial."""
    at = replace(case or Case(), buckets=files, concurrency=processes)
    numbered = tuple(
        replace(single_trial, index=index) for index, single_trial in enumerate(trials or (trial(),))
    )
    return Run(at, numbered, **fields)


def passes(files: int, processes: int, tps: float, noise: float = 0.02, count: int = 5) -> Run:
    """Return a run of `count` passes around a TPS, with noise that depends on files and processes."""
    draw = Random(f"{files}:{processes}")
    return run(files, processes, *(trial(tps * math.exp(draw.gauss(0, noise))) for _ in range(count)))


NOISE = (0.98, 1.01, 1.0, 1.02, 0.99)
"""Factors of the TPS of each pass on a calm machine."""


def run_at_each_pass(
    case: Case, tps: float, processes: int = 2, noise: Sequence[float] = NOISE, **fields: Any
) -> Run:
    """Return a run of a case on a file, with a trial of `tps` times each factor of `noise`."""
    return run(1, processes, *(trial(tps * factor, **fields) for factor in noise), case=case)


def one_table(*runs: Run) -> Group:
    """Return the only table of these runs, whose cases may differ in a single option."""
    (table,) = merge_groups(group_runs(runs))
    return table


def curve(files: int, *totals: float) -> list[Run]:
    """Return runs with these TPS at 1, 2, 3 … processes."""
    return [run(files, processes, trial(tps)) for processes, tps in enumerate(totals, 1)]


def group(*runs: Run) -> Group:
    """Return the only group of these runs."""
    (only_group,) = group_runs(runs)
    return only_group


def findings(*runs: Run) -> dict[str, str]:
    """Return the texts of the findings on these runs, by code; fail if a code repeats."""
    results: tuple[Finding, ...] = advise_group(group(*runs))
    assert len({finding.code for finding in results}) == len(results)
    return {finding.code: finding.text for finding in results}


def findings_with_codes(runs: Sequence[Run], *codes: str) -> list[str]:
    """Return "code: text" of the findings on these runs whose codes have these prefixes."""
    return [f"{code}: {text}" for code, text in findings(*runs).items() if code.startswith(codes)]
