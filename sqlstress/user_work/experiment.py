"""Base class of the experiments with the user's own work: sql, app and exec."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlstress.experiment import Experiment
from sqlstress.report.case import Case

if TYPE_CHECKING:
    from sqlstress.user_work.lock_watch import LockWatch


class UserExperiment(Experiment):
    """Base class of the experiments sql, app and exec, which run the user's own work."""

    sweeps = True
    many_files = False
    windowed = True
    retries_empty = True

    def companions(self) -> dict[str, Callable[..., LockWatch]]:
        from sqlstress.user_work.lock_watch import LockWatch

        return {"lock watch": LockWatch}

    def preloads(self, case: Case) -> tuple[str, ...]:
        # The fork server imports this module once, so that the process of the checks starts fast.
        return ("sqlstress.user_work.checks",)
