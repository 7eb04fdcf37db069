"""The user's own work at a rate, with real processes and a real lock: delays that a closed loop hides."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstress.plan import cases_of
from sqlstress.report import Trial
from sqlstress.report.case import Case
from tests.experiments.holding import measured, slow
from tests.experiments.sql.databases import case_of
from tests.own_app import HEAD, WRITES

EVEN: dict[str, Any] = {
    "arrival": "even",
    "concurrency": 2,
    "duration": "1200ms",
    "warmup": "200ms",
    "repeat": 1,
    "seed": 3,
}


def sql(folder: Path, rate: int) -> Case:
    pay = "BEGIN IMMEDIATE; UPDATE account SET balance = balance - 1 WHERE id = 1; COMMIT;"
    return case_of(folder, {"pay.sql": pay}, rate=rate, **EVEN)


def app(folder: Path, rate: int) -> Case:
    (folder / "own.py").write_text(HEAD + WRITES, encoding="utf-8")
    return cases_of({"file": str(folder / "own.py"), "rate": rate, **EVEN}, "app")[0]


def commands(folder: Path, rate: int) -> Case:
    if not shutil.which("sqlite3"):
        pytest.skip("there is no sqlite3 shell here")
    (folder / "setup.sql").write_text("CREATE TABLE t (x); INSERT INTO t VALUES (0);", encoding="utf-8")
    words = ["sqlite3", "-cmd", ".timeout 30000", "{db}", "UPDATE t SET x = x + 1"]
    data = {"setup": str(folder / "setup.sql"), "command": words, "alone": True}
    return cases_of({**data, "rate": rate, **EVEN}, "exec")[0]


ATTEMPTS = 8
ROWS = [(sql, 200), (app, 200), (commands, 20)]


@pytest.mark.thorough
@pytest.mark.parametrize(("made", "rate"), ROWS)
def test_lock_of_half_a_second_delays_all_operations_due_in_it(
    tmp_path: Path, made: Callable[[Path, int], Case], rate: int
) -> None:
    # On a busy machine the lock may be taken so late that the window ends before, or commands start slowly.
    # If so, try again.
    trials = (measured(made(tmp_path, rate), tmp_path) for _ in range(ATTEMPTS))
    assert any(shows_delayed_operations(trial, rate) for trial in trials)


def shows_delayed_operations(trial: Trial, rate: int) -> bool:
    """Return whether nearly all operations due during the lock are slow, but only few by their own begin."""
    assert trial.error is None and trial.verdict.status == "ok"
    assert trial.arrived and trial.arrived.due == round(1.2 * rate)
    (service,) = trial.latency.values()
    # Operations due in the last 0.1 s of the lock waited less than the limit.
    came = 0.4 * rate
    waited = slow(trial.arrived.all_kinds)
    # By their own begin, only operations under way are slow, and those that the machine delays.
    return waited >= 0.9 * came and waited - slow(service) >= 0.5 * came


def test_rates_are_cases_at_every_number_of_processes() -> None:
    cases = cases_of({"builtin": ["bank"], "rate": "50,100", "concurrency": "1,2", "ledger": True}, "sql")
    found = [(case.spec.ledger, case.concurrency, case.arrivals and case.arrivals.rate) for case in cases]
    assert found == [
        (ledger, count, rate) for ledger in (False, True) for count in (1, 2) for rate in (50, 100)
    ]
