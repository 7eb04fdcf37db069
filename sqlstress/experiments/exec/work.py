"""The parent's half of the experiment with commands."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil

from sqlstress.experiments.exec import ENDED, ESCAPED
from sqlstress.experiments.exec.worker import TRIAL
from sqlstress.report.results import Sighting
from sqlstress.system.processes import GRACE_S
from sqlstress.system.sharing import shared_array
from sqlstress.user_work.parent import UserWork

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report import Trial, Verdict
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place


class ExecWork(UserWork):
    """One trial. No process that a command started outlives it."""

    redefines = True
    """Commands may make tables of their own."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self._trial = secrets.token_hex(16)
        self.shared = (*self.shared, shared_array("q", 1), self._trial)
        self._escaped = 0

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        self._end_all()
        return super().verify(outcomes, pulse)

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        if self._escaped:
            trial = replace(trial, sightings=(*trial.sightings, Sighting(ENDED, ESCAPED, self._escaped)))
        return super().complete(trial, pulse)

    def discard(self) -> None:
        self._end_all()
        super().discard()

    def _end_all(self) -> None:
        """End what the workers could not: what left its process group, or whose worker was killed."""
        if self.place.stores:
            self._escaped += end_marked(TRIAL, self._trial)


def end_marked(name: str, value: str) -> int:
    """End all processes but this one whose environment has a variable of this value; return their number.

    Whoever started them, and whatever became of that.
    """
    ended = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended, or is another user's
            if process.pid != os.getpid() and process.environ().get(name) == value:
                ended.append(process)
                process.kill()
    psutil.wait_procs(ended, GRACE_S)
    return len(ended)
