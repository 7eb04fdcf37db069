"""Rate: the one figure of a run by which it is compared with others, more being better."""

from __future__ import annotations

from sqlstress.analysis.wording import finite
from sqlstress.experiment import face_of
from sqlstress.report import Run


def rate_of(run: Run) -> float | None:
    """Return how much a second all processes did together; None if it was not done, or its data is wrong."""
    trial = run.shown()
    if trial is None or trial.outcome != "done" or run.verdict.status == "failed":
        return None
    rate = finite(face_of(run.case).show().rate(run))
    return rate if rate is not None and rate > 0 else None
