"""Faults while the user's own work is measured: what was acknowledged is there, once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from sqlstress.engine.observer import Nobody
from sqlstress.engine.trial import TrialRunner
from sqlstress.plan import cases_of
from sqlstress.system.interrupt import StopSignals

SHORT = {"repeat": 1, "duration": "500ms", "warmup": "200ms", "synchronous": "off", "seed": 1}


class Killer(Nobody):
    """Kills the first worker when the load is under way."""

    def __init__(self) -> None:
        self.killed = False

    def tick(self, operations: int) -> None:
        if operations > 20 and not self.killed:
            min(multiprocessing.active_children(), key=lambda one: one.pid or 0).kill()
            self.killed = True


@pytest.mark.fault(
    area="workers",
    injected="a worker of the user's SQL scripts killed in the window (SIGKILL)",
    outcome="its trial says who; the ledger holds what it was told of, one more at most; the checks hold",
)
def test_what_a_killed_worker_was_told_of_is_in_the_ledger(tmp_path: Path) -> None:
    *_, case = cases_of({"builtin": ["bank"], "concurrency": 3, "ledger": True, **SHORT}, "sql")
    killer = Killer()
    with StopSignals() as signals:
        trial = TrialRunner(tmp_path, False, signals, killer, 1).run(case, 0)
    assert killer.killed and case.spec.ledger
    assert trial.error and "worker 1 " in trial.error and "the others' figures are kept" in trial.error
    checks = {one.name: one for one in trial.verdict.checks}
    assert {one.status for one in checks.values()} == {"ok"} and checks["ledger"].checked > 20
