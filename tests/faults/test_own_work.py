"""Faults while the user's own work is measured: all acknowledged work is there, once."""

import multiprocessing
import re
from pathlib import Path

import pytest

from sqlstress.engine.study import Observer
from sqlstress.engine.trial import TrialRunner
from sqlstress.plan import cases_of
from sqlstress.system.interrupt import StopSignals
from tests.engine.processes import Command, saved_report
from tests.faults.commands import BANK, BRIEF, REPORT, Held, left, posix, stopped
from tests.rows import fault, mostly_long

SHORT = {"repeat": 1, "duration": "500ms", "warmup": "200ms", "synchronous": "off", "seed": 1}


class Killer(Observer):
    """Kills a worker during the load."""

    def __init__(self) -> None:
        self.killed = False
        self._others = {*multiprocessing.active_children()}

    def tick(self, operations: int) -> None:
        if operations > 20 and not self.killed:
            own = {*multiprocessing.active_children()} - self._others
            min(own, key=lambda one: one.pid or 0).kill()
            self.killed = True


@fault(
    "workers",
    "a worker of `sql` killed in the window",
    "the ledger holds what it was told of, one more at most",
)
@pytest.mark.thorough
def test_acknowledged_work_of_a_killed_worker_is_in_the_ledger(tmp_path: Path) -> None:
    *_, case = cases_of({"builtin": ["bank"], "concurrency": 3, "ledger": True, **SHORT}, "sql")
    killer = Killer()
    with StopSignals() as signals:
        trial = TrialRunner(tmp_path, False, signals, killer, 1).run(case, 0)
    assert killer.killed and case.spec.ledger
    assert re.match(r"worker \d (was|ended).*the others' figures are kept", trial.error or "")
    checks = {check.name: check for check in trial.verdict.checks}
    assert {check.status for check in checks.values()} == {"ok"} and checks["ledger"].checked > 20


KEPT = {
    "sql": (("sql", "-b", "bank"), "1 of 3 trials"),
    "app": (("app", BANK), "1 of 3 trials"),
    "limit": (("limit", "sql", "-b", "bank", "--p99", "1s"), "1 window"),
}
PHASES = ("preparing", "starting", "measuring", "verifying")
ROWS = [(name, phase) for name in KEPT for phase in PHASES]
IN_TURN = [("sql", "preparing"), ("app", "starting"), ("sql", "measuring"), ("limit", "verifying")]


@pytest.mark.thorough
@posix
@fault("stop", "Ctrl-C in the second trial of `sql`, `app` or `limit`", "exit 130; the first trial is kept")
@pytest.mark.parametrize(("name", "phase"), mostly_long(ROWS, IN_TURN))
def test_stop_in_the_second_trial_keeps_the_first(tmp_path: Path, name: str, phase: str) -> None:
    words, kept = KEPT[name]
    repeat = () if name == "limit" else ("--repeat", "3")
    with Held(tmp_path, phase, *words, *BRIEF, *repeat, *REPORT, count=2) as command:
        code, _, errors = stopped(command)
    assert (code, errors) == (130, f"Stopped after {kept}; what was measured is in report.json.\n")
    assert left(tmp_path) == ["report.json"]
    report = saved_report(tmp_path)
    assert report.interrupted
    assert [trial.verdict.status for run in report.runs for trial in run.trials] == ["ok"]


STANDING = """
import os, sqlite3, sys, time
from sqlstress import check, connect, setup, transaction
def stand(moment):
    if sys.argv and os.environ.get("STAND_AT") == moment:
        open(os.environ["STANDS"], "w").close()
        time.sleep(600)
@setup
def made(path):
    c = sqlite3.connect(path)
    c.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (0)")
    c.close()
    stand("setup")
@transaction
def add(path):
    c = sqlite3.connect(path, timeout=30)
    c.execute("UPDATE t SET x = x + 1")
    c.commit()
    c.close()
    stand("transaction")
@check
def same(query):
    if query("SELECT x FROM t") != [(0,)]:
        stand("check")
"""


@pytest.mark.thorough
@posix
@fault("stop", "Ctrl-C while the user's setup, transaction or check stands still", "exit 130 at once")
@pytest.mark.parametrize("moment", ["setup", "transaction", "check"])
def test_hanging_user_code_can_be_stopped(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(STANDING, encoding="utf-8")
    stands = tmp_path / "stands"
    monkeypatch.setenv("STAND_AT", moment)
    monkeypatch.setenv("STANDS", str(stands))
    with Command(tmp_path, "app", "own.py", *BRIEF, "--repeat", "1", *REPORT) as command:
        command.until(stands.exists, "such moment")
        code, _, errors = stopped(command)
    assert code == 130 and errors.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"own.py", "stands"}
