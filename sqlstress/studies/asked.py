"""The study that is asked for, and the session that it is carried out in."""

from __future__ import annotations

from pathlib import Path

from sqlstress.engine.session import Bench, Session
from sqlstress.engine.study import Study
from sqlstress.plan import Planned
from sqlstress.studies.sweep import Sweep


def asked_study(
    plan: Planned, directory: Path, keep: bool, command: tuple[str, ...]
) -> tuple[Study[Bench], Session]:
    """Return the study of an experiment that has one of its own, else a sweep of the cases."""
    own = plan.experiment
    study = own.open_study(plan.cases, plan.extra) if own and own.study else Sweep(plan.cases)
    return study, Session(plan.cases, directory, keep, command)
