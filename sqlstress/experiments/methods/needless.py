"""Which cells need not be measured: those of a method that has failed at a smaller scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlstress.engine.protocols import LIMIT, TIMEOUT
from sqlstress.experiments.methods.face import tricks_of
from sqlstress.report import Run
from sqlstress.report.case import Case

REASONS = {TIMEOUT: "timed out", LIMIT: "met a limit"}


def needless(case: Case, runs: Sequence[Run]) -> str | None:
    """Return why a cell need not be measured after these runs of cells; None when it must."""
    for run in runs:
        scale = run.case.spec.scale
        if scale >= case.spec.scale or _series(run.case) != _series(case):
            continue
        outcome = next((trial.outcome for trial in run.trials if trial.outcome in REASONS), None)
        if outcome:
            return f"{tricks_of(case)} {REASONS[outcome]} at {scale:,} already"
    return None


def _series(case: Case) -> Case:
    """Return what the cells of a method at all its scales have in common."""
    return replace(case, spec=replace(case.spec, scale=0))
