"""Rate: the one figure of a run by which it is compared with others, more being better."""

from __future__ import annotations

from sqlstress.analysis.wording import finite
from sqlstress.experiments.cycles.shown.times import total_ns
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S

_COUNTED = {"methods": "rows", "keys": "rows", "cycles": "cycles"}


def counted(case: Case) -> str:
    """Return what a rate counts, in the plural: transactions, pairs, rows or cycles."""
    return _COUNTED.get(case.experiment, f"{case.unit}s")


def rate_of(run: Run) -> float | None:
    """Return how much a second all processes did together; None if it was not done, or its data is wrong."""
    trial = run.shown()
    if trial is None or trial.outcome != "done" or run.verdict.status == "failed":
        return None
    rates = {"kv": run.median_tps(), "cycles": _cycles_per_s(run)}
    rate = finite(rates.get(run.case.experiment, trial.rows_per_s))
    return rate if rate is not None and rate > 0 else None


def _cycles_per_s(run: Run) -> float | None:
    trial, cycling = run.shown(), run.case.cycling
    total = total_ns(run.case, trial) if trial and cycling else 0
    return NS_PER_S * cycling.cycles * run.case.concurrency / total if cycling and total > 0 else None
