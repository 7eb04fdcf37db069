"""A host's share of a load that several hosts put on one server: what its report says of each trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstress.analysis.wording import finite
from sqlstress.report import Run
from sqlstress.report.together import Together


@dataclass(frozen=True, slots=True)
class Share:
    """One trial of a host, as a part of a common one."""

    together: Together
    """With whom, and when by the server's clock."""
    seconds: float
    """The length of its window."""
    rate: float
    """Its own transactions a second; 0 where it does not count."""
    why_not: str = ""
    """Why it does not count, in a clause; "" where it does."""


def shares(run: Run) -> Iterator[Share]:
    """Yield a host's shares in common trials of a case, those without a figure included."""
    wrong = "its data was wrong" if run.verdict.status == "failed" else ""
    for trial in run.trials:
        if trial.together:
            rate = finite(trial.tps) or 0.0
            why = (
                wrong or (trial.error or "").removesuffix(".") or ("" if rate > 0 else "it got nothing done")
            )
            yield Share(trial.together, trial.seconds, 0.0 if why else rate, why)
