"""Rounds of real writers that are really killed, with interference with them or their files."""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.crash import study as crash
from sqlstress.experiments.crash.database import CrashDatabase, Remains
from sqlstress.experiments.crash.spec import Kills, Transactions
from sqlstress.experiments.crash.study import LONGEST_S, OPENING_S, KillPlan, KillStudy, Victims, draw
from sqlstress.report.case import Case, Settings
from sqlstress.studies.sweep import run_on_bench
from tests.engine.benches import bench
from tests.rows import fault

CASE = Case(
    workload="crash",
    concurrency=2,
    seed=1,
    settings=Settings(wal_autocheckpoint=100),
    spec=Transactions(batch=4),
)
TOGETHER = KillPlan(opening=False, after_s=0.01, order=(2, 1), alone=False, then_s=0.0, held=False)
ALONE = TOGETHER._replace(alone=True, then_s=0.01)


@pytest.fixture
def fix_strike(monkeypatch: pytest.MonkeyPatch) -> Callable[[KillPlan], None]:
    """Let every round have the strike that is passed, at first TOGETHER."""

    def always(strike: KillPlan) -> None:
        monkeypatch.setattr(crash, "draw", lambda seed, number, writers: strike)

    always(TOGETHER)
    return always


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None]) -> None:
    """Change the file of each round after the death of its writers, before the study opens it."""
    look = CrashDatabase.remains

    def and_act(self: CrashDatabase) -> Remains:
        found = look(self)
        act(self.place.paths[0])
        return found

    monkeypatch.setattr(CrashDatabase, "remains", and_act)


def kills(folder: Path, rounds: int, *, keep: bool = False, case: Case = CASE) -> Kills:
    """Return the results of `rounds` rounds."""
    study = KillStudy(Kills(case, rounds))
    assert not run_on_bench(study, bench(folder, keep=keep)).interrupted
    return study.kills


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


@fault(
    "crash",
    "acknowledged transactions dropped between a kill and the next opening",
    "each is named, with its round",
)
@pytest.mark.usefixtures("fix_strike")
def test_loss_is_reported_by_round_and_the_next_round_has_a_new_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between(monkeypatch, lambda path: execute(path, "DELETE FROM log"))
    found = kills(tmp_path, 2)
    assert (found.rounds, found.kills, found.databases, found.error) == (2, 4, 3, None)
    assert found.verdict.status == "failed"
    assert found.lost_count == found.acknowledged > 1
    assert found.verdict.counterexamples[0].startswith("round 1: transaction 1 of writer ")
    assert list(tmp_path.iterdir()) == []


@fault(
    "crash",
    "a row changed between a kill and the next opening, with `--keep`",
    "its record is named; the files stay",
)
@pytest.mark.usefixtures("fix_strike")
def test_wrong_files_are_kept_in_the_folder_of_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between(monkeypatch, lambda path: execute(path, "UPDATE record SET value = 1 WHERE key = 3"))
    assert kills(tmp_path, 1, keep=True).torn_count == 1
    with closing(sqlite3.connect(tmp_path / "round-1" / "kv.db")) as connection:
        assert connection.execute("SELECT value FROM record WHERE key = 3").fetchone() == (1,)
    assert (tmp_path / "kv.db").exists()


@pytest.mark.thorough
@pytest.mark.usefixtures("fix_strike")
def test_each_round_continues_with_the_files_of_the_previous_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers: list[int] = []

    def look(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            writers.append(connection.execute("SELECT count(DISTINCT writer) FROM log").fetchone()[0])

    between(monkeypatch, look)
    monkeypatch.setattr(crash, "ROUNDS_EACH", 3)
    found = kills(tmp_path, 4, case=replace(CASE, concurrency=1))
    assert writers == [1, 2, 3, 1]
    assert (found.databases, found.verdict.status) == (2, "ok")


@pytest.mark.thorough
@fault("crash", "one of several writers killed", "the others go on, and the files are proved")
def test_survivors_of_a_kill_go_on_and_their_work_is_examined_too(
    tmp_path: Path, fix_strike: Callable[[KillPlan], None]
) -> None:
    fix_strike(ALONE)
    found = kills(tmp_path, 2)
    checked = {check.name: check.checked for check in found.verdict.checks}
    assert (found.alone, found.kills) == (2, 4)
    assert (checked["survivors"], checked["integrity_check"]) == (2, 4)
    assert found.verdict.status == "ok"


@fault("crash", "one writer killed and the others stopped", "named as survivors that did not go on")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
def test_survivors_that_do_not_go_on_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fix_strike: Callable[[KillPlan], None]
) -> None:
    kill = Victims.kill

    def kill_and_stop(self: Victims, numbers: Collection[int]) -> None:
        kill(self, numbers)
        for number in self.alive:
            os.kill(self._processes[number - 1].pid or 0, signal.Signals["SIGSTOP"])

    fix_strike(ALONE._replace(then_s=0.0))
    monkeypatch.setattr(Victims, "kill", kill_and_stop)
    monkeypatch.setattr(crash, "GOES_ON_S", 0.3)
    (told,) = kills(tmp_path, 1).verdict.counterexamples
    assert told == (
        "round 1: after writer 2 was killed the others did not go on: nothing was acknowledged for 0 s"
    )


@pytest.mark.thorough
@fault("crash", "a writer of a crash test killed by somebody else", "the test ends; what was proved is kept")
@pytest.mark.usefixtures("fix_strike")
def test_writer_that_ends_by_itself_ends_the_test_with_its_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait, rounds = Victims.let_write, count(1)

    def strike_by_somebody_else(self: Victims, seconds: float, pulse: Callable[[], None]) -> None:
        wait(self, seconds, pulse)
        if next(rounds) == 2:
            self._processes[0].kill()
            self._processes[0].join()

    monkeypatch.setattr(Victims, "let_write", strike_by_somebody_else)
    found = kills(tmp_path, 5)
    killed = "ended with exit code" if sys.platform == "win32" else "was killed by SIGKILL"
    assert (found.error or "").startswith(f"worker 1: {killed}")
    assert (found.rounds, found.verdict.status) == (2, "ok")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("fix_strike")
def test_database_creation_failure_is_an_error_at_once(tmp_path: Path) -> None:
    case = replace(CASE, settings=Settings(page_size=512, pragmas=(("auto_vacuum", "7"),)))
    with pytest.raises(UsageError, match="PRAGMA auto_vacuum=7 was not accepted"):
        kills(tmp_path, 5, case=case)
    assert list(tmp_path.iterdir()) == []


# The kind and moment of kills are drawn from the seed, and all kinds occur.


@given(st.integers(0, 2**32), st.integers(0, 10**6), st.integers(1, 256))
def test_every_writer_is_killed_once_and_the_moments_are_within_bounds(
    seed: int, number: int, writers: int
) -> None:
    strike = draw(seed, number, writers)
    assert sorted(strike.order) == list(range(1, writers + 1))
    assert strike.alone <= (writers > 1)
    assert 0 <= strike.after_s <= (OPENING_S if strike.opening else LONGEST_S)
    assert 0 <= strike.then_s <= LONGEST_S
    assert strike == draw(seed, number, writers)


def test_hundred_rounds_have_all_kinds_and_moments_of_kills() -> None:
    strikes = [draw(1, number, 3) for number in range(100)]
    kinds = {(strike.opening, strike.alone, strike.held) for strike in strikes}
    assert len(kinds) == 8
    assert {strike.order[0] for strike in strikes} == {1, 2, 3}
    assert {int(10 * strike.after_s / LONGEST_S) for strike in strikes} == set(range(10))
