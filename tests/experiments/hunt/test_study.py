"""A hunt as a whole: rounds until a finding, smaller rounds, and the command that repeats it."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sqlstress
from sqlstress.engine.pool import Pauses, Pool
from sqlstress.engine.session import Bench
from sqlstress.engine.study import SILENT
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.hunt.proof import DAMAGED, STALE, WRITES
from sqlstress.experiments.hunt.result import BUILTIN_LOAD, Hunt, Hunting
from sqlstress.experiments.hunt.rounds import Drawn, OwnRounds, UserRounds, pauses_of
from sqlstress.experiments.hunt.spec import CHECKPOINTER, Round, Schedule, pause_rate, role_of
from sqlstress.experiments.hunt.study import HuntStudy
from sqlstress.plan import plan_of
from sqlstress.report import Check, Trial, Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.studies.sweep import run_on_bench
from sqlstress.targets.sqlite.connections import native_unavailable
from tests.engine.benches import BLANK
from tests.example_report import example_report
from tests.experiments.measured import measure, rejected, statuses, wait_for
from tests.rows import fault, thorough

TAKEN_BACK = fault("checkers", "a commit taken back while others go on, or while it is read", "found")

FINE = Verdict((Check(WRITES, "ok", 5),))
WRONG = Verdict((Check(WRITES, "failed", 5, 1, ("row 1 is gone",)),))
needs_extension = pytest.mark.skipif(
    native_unavailable("sqlite3") is not None, reason="there is no C extension here"
)
TRIAL = example_report().runs[0].trials[0]


class Scripted:
    """A runner whose rounds fail as a function of the case decides; a round takes a second."""

    def __init__(self, fails: Callable[[Case], bool], error: str | None = None, fine: Verdict = FINE) -> None:
        self.fails, self.error, self.fine = fails, error, fine
        self.observer, self.rounds = SILENT, 0

    def once(self, case: Case, index: int, pauses: Pauses | None) -> Trial:
        self.rounds += 1
        return replace(TRIAL, verdict=WRONG if self.fails(case) else self.fine, error=self.error)


BLANK_HUNT = Hunt("sqlite3", BUILTIN_LOAD, 5, max_time_s=60.0)


def hunted(runner: Scripted, blank: Hunt = BLANK_HUNT, *, shrink_time_s: float = 1000.0) -> Hunt:
    """Run a hunt with made-up rounds, and return it."""
    rounds = OwnRounds(plan_of({"seed": "5"}, "hunt").cases[0], Hunting())
    study = HuntStudy(blank, rounds, shrink_time_s, clock=lambda: float(runner.rounds))
    run_on_bench(study, Bench(BLANK, runner))  # type: ignore[arg-type]
    return study.hunt


def test_hunt_ends_when_its_time_is_up() -> None:
    hunt = hunted(Scripted(lambda case: False))
    assert (hunt.rounds, hunt.found, hunt.error) == (60, None, None)


def test_hunt_stops_at_the_first_finding_and_shrinks_its_round() -> None:
    runner = Scripted(lambda case: case.spec.checkpointers >= 2 and "fetch" in case.spec.pause_at)
    hunt = hunted(runner)
    assert hunt.found and hunt.smallest
    assert (hunt.found.tries, hunt.found.failed) == (5, 5)
    smallest = hunt.smallest.case.spec
    assert (smallest.writers, smallest.readers, smallest.holders, smallest.checkpointers) == (1, 0, 0, 2)
    assert smallest.pause_at == ("fetch",)
    assert smallest == replace(Round(), checkpointers=2, pause_at=("fetch",), checkpoint=smallest.checkpoint)


def test_command_runs_the_smallest_round_again() -> None:
    hunt = hunted(Scripted(lambda case: case.spec.checkpointers >= 2))
    assert hunt.smallest
    words = hunt.smallest.command[2:]
    given = {name.removeprefix("--"): value for name, value in zip(words[1::2], words[2::2], strict=True)}
    assert words[0] == "--as-given"
    base = plan_of({"seed": "1", **given}, "hunt").cases[0]
    again = OwnRounds(base, Hunting(as_given=True)).draw(0).case
    assert (again.spec, again.settings.journal_mode) == (hunt.smallest.case.spec, "wal")


def test_round_without_repeated_failure_is_not_shrunk() -> None:
    once = iter([True])
    hunt = hunted(Scripted(lambda case: next(once, False)))
    assert hunt.found and hunt.smallest is None
    assert (hunt.found.tries, hunt.found.failed) == (15, 0)


def test_hunt_without_time_to_shrink_keeps_the_found_round() -> None:
    runner = Scripted(lambda case: True)
    hunt = hunted(runner, shrink_time_s=0.0)
    assert runner.rounds == hunt.rounds == 1
    assert hunt.found and hunt.found.tries == 0


def test_round_that_cannot_run_ends_the_hunt() -> None:
    hunt = hunted(Scripted(lambda case: False, error="worker 1: disk full"))
    assert (hunt.rounds, hunt.error) == (1, "worker 1: disk full")


def test_pauses_depend_on_role_and_seed() -> None:
    case = Case(
        workload=BUILTIN_LOAD,
        concurrency=3,
        seed=3,
        spec=Round(writers=2, checkpointers=1, checkpointer_pause=5),
    )
    words = [pauses_of(Drawn(case))(process) for process in (1, 2, 3)]
    assert words[:2] == [None, None] and words[2] is not None
    assert pause_rate(case.spec, role_of(case.spec, 3).name) == 5 == max(words[2][2:34])
    assert role_of(case.spec, 3).name == CHECKPOINTER
    assert pauses_of(Drawn(case))(3) == words[2]


def test_user_rounds_take_the_cases_in_turns() -> None:
    cases = [Case(concurrency=2), Case(concurrency=4)]
    rounds = UserRounds(cases, Schedule(("write-lock",), 2, 0.001), ("sqlstress", "hunt", "app", "bank.py"))
    drawn = [rounds.draw(number) for number in range(4)]
    assert [round_.case.concurrency for round_ in drawn] == [2, 4, 2, 4]
    assert {round_.schedule for round_ in drawn} == {Schedule(("write-lock",), 2, 0.001)}
    assert rounds.command(drawn[1]) == (
        *("sqlstress", "hunt", "app", "bank.py", "--concurrency", "4"),
        *("--pause-at", "write-lock", "--pause", "2"),
    )


# Real processes.


def round_of(
    folder: Path,
    during: Callable[[Pool], None] = lambda pool: None,
    *,
    duration_s: float = 0.4,
    journal: str = "wal",
    **spec: Any,
) -> Any:
    """Return a real round without pauses; `during` may interfere with it."""
    made = Round(**{"writers": 2, "readers": 1, "checkpointers": 1, "churn": True, "keys": 8, **spec})
    case = Case(
        workload=BUILTIN_LOAD,
        concurrency=made.writers + made.readers + made.holders + made.checkpointers,
        duration_s=duration_s,
        warmup_s=0.0,
        settings=Settings(journal_mode=journal, synchronous="off", wal_autocheckpoint=100),
        spec=made,
    )
    return measure(case, folder, during)


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, timeout=10)) as connection, connection:
        connection.execute(sql)


@pytest.mark.thorough
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_round_without_pauses_finds_nothing(tmp_path: Path, journal: str) -> None:
    verdict = round_of(tmp_path, journal=journal, reopen=20, holders=1).verdict()
    assert verdict.status == "ok", verdict
    assert {WRITES, STALE, DAMAGED, "integrity_check"} <= statuses(verdict).keys()


@TAKEN_BACK
@pytest.mark.parametrize(
    ("sql", "check"),
    [
        thorough("UPDATE writer SET n = n - 1 WHERE id = 0", WRITES),
        ("UPDATE part SET n = n - 1 WHERE id = (SELECT id FROM part WHERE n > 5 ORDER BY n DESC)", WRITES),
        thorough("UPDATE account SET amount = amount + 1 WHERE id = 3", "sum of all accounts"),
        thorough("UPDATE writer SET n = n + 5 WHERE id = 1", WRITES),
    ],
)
def test_change_by_another_program_fails_the_round(tmp_path: Path, sql: str, check: str) -> None:
    measured = round_of(tmp_path, readers=0)
    execute(measured.path, sql)
    rejected(measured.verdict(), check)


@TAKEN_BACK
@pytest.mark.thorough
def test_read_of_a_reverted_write_is_found(tmp_path: Path) -> None:
    def take_back(_: Pool) -> None:
        execute(
            tmp_path / "kv.db",
            "CREATE TRIGGER back AFTER UPDATE ON writer WHEN new.n % 3 = 0 "
            "BEGIN UPDATE writer SET n = new.n - 2 WHERE id = new.id; END",
        )

    rejected(round_of(tmp_path, take_back, readers=2, duration_s=1.0).verdict(), STALE)


@fault("checkers", "an index damaged while it is used", "found")
def test_damage_is_found(tmp_path: Path) -> None:
    measured = round_of(tmp_path)
    with closing(sqlite3.connect(measured.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'part_by_n'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with measured.path.open("r+b") as file:
        file.seek((page - 1) * size + size - 40)
        file.write(os.urandom(40))
    rejected(measured.verdict(), "integrity_check")


def test_library_that_cannot_be_wrapped_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlstress.targets.native import NativeUnavailable
    from sqlstress.targets.sqlite import shim

    def refuse(driver: str) -> None:
        raise NativeUnavailable("its SQLite is hidden")

    monkeypatch.setattr(shim, "driver_handle", refuse)
    with pytest.raises(EnvironmentFailure, match="not available with sqlite3: its SQLite is hidden"):
        shim.begin_pauses("sqlite3", [])


@needs_extension
@pytest.mark.thorough
def test_hunt_in_an_application_reports_failures_of_its_check(tmp_path: Path) -> None:
    report = sqlstress.hunt(
        "app", file="examples/app/bank_wrong.py", max_time="30s", shrink_time="0s", seed=1, directory=tmp_path
    )
    found = report.results[BUILTIN_LOAD].found
    assert not report.ok
    assert found.verdict.status == "failed" and found.schedule
    assert found.command[:4] == ("sqlstress", "hunt", "app", "examples/app/bank_wrong.py")


@needs_extension
@pytest.mark.thorough
def test_hunt_in_a_correct_application_finds_nothing(tmp_path: Path) -> None:
    report = sqlstress.hunt("app", file="examples/app/bank.py", max_time="3s", seed=1, directory=tmp_path)
    assert report.ok, report.text()


@pytest.mark.thorough
def test_single_process_that_reconnects_may_delete_the_wal(tmp_path: Path) -> None:
    def is_occupied() -> bool:
        # While the old file exists under another name, no new file gets its inode number.
        with suppress(FileNotFoundError):  # The process has just deleted the WAL.
            os.link(tmp_path / "kv.db-wal", tmp_path / "other")
            return True
        return False

    measured = round_of(
        tmp_path, lambda pool: wait_for(is_occupied), writers=1, readers=0, checkpointers=0, reopen=2
    )
    (outcome,) = measured.outcomes
    assert outcome.findings and outcome.findings.broken_seal is None
    assert measured.verdict().status == "ok"
