"""Crash tests by killing: writers are killed over and over, and after every kill the files are examined."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace

from sqlstress.engine.failure import as_failure
from sqlstress.engine.trial import TrialRunner
from sqlstress.engine.victims import Victims
from sqlstress.errors import EnvironmentFailure, Interrupted
from sqlstress.experiments.crash.database import Database
from sqlstress.experiments.crash.records import MOST_WRITERS
from sqlstress.experiments.crash.result import Kills
from sqlstress.experiments.crash.round import Round
from sqlstress.experiments.crash.strikes import draw
from sqlstress.report import Check, Verdict
from sqlstress.report.problems import added
from sqlstress.targets.sqlite.place import SqlitePlace

ROUNDS_EACH = 50
"""Rounds that a database serves: so many recoveries on top of each other, and a log that stays short."""

Tell = Callable[[Kills], None]
"""Called after every round with what has been found by then."""


class KillStudy:
    """Kills the writers of a case, round after round."""

    def __init__(self, kills: Kills, runner: TrialRunner, tell: Tell) -> None:
        """`kills` says what is to be done; `runner` knows the folder, and whether we are to stop."""
        self.kills = kills
        self._case, self._runner, self._tell = kills.case, runner, tell
        self._rounds_each = min(ROUNDS_EACH, MOST_WRITERS // kills.case.concurrency)
        self._place = SqlitePlace(kills.case, runner.folder)
        self._database = Database(self._place)
        self._begun = time.perf_counter()

    def run(self) -> bool:
        """Do all rounds; `kills` then has what was found. Return whether it was interrupted.

        Raises SqlstressError when not one round could be done.
        """
        try:
            self._rounds()
        except Interrupted:
            return True
        except Exception as problem:
            if not self.kills.rounds:
                raise as_failure(problem, self._case.driver) from problem
            self.kills = replace(self.kills, error=str(as_failure(problem, self._case.driver)))
        finally:
            self._database.release()
            if not self._runner.keep:
                self._database.remove()
        return False

    def _rounds(self) -> None:
        with ExitStack() as running:
            victims = self._start(0, running)
            for number in range(self.kills.planned):
                if number % self._rounds_each == 0:
                    self._create()
                strike = draw(self._case.seed, number, self._case.concurrency)
                current = Round(self._database, victims, strike, self._runner.signals.check)
                current.kill()
                running.close()
                if number + 1 < self.kills.planned:
                    # They start while the files are examined.
                    victims = self._start(number + 1, running)
                current.examine()
                self._take(current)

    def _start(self, number: int, running: ExitStack) -> Victims:
        """Start the writers of a round; they open nothing before they are told to begin."""
        before = number % self._rounds_each * self._case.concurrency
        victims = running.enter_context(Victims(self._case, self._place, before))
        victims.start(self._runner.signals.check)
        return victims

    def _create(self) -> None:
        """Go on with a new database."""
        effective = self._database.create()
        self.kills = replace(self.kills, effective=effective, databases=self.kills.databases + 1)

    def _take(self, done: Round) -> None:
        """Enter what a round has found."""
        kills = done.added_to(self.kills)
        verdict = _sum([kills.verdict, *(_in_round(kills.rounds, one) for one in done.verdicts)])
        self.kills = replace(kills, verdict=verdict, seconds=time.perf_counter() - self._begun)
        self._tell(self.kills)
        if any(one.status == "failed" for one in done.verdicts):
            if self._runner.keep:
                self._database.set_aside(f"round-{kills.rounds}")
            self._create()
        elif done.fallen:
            raise EnvironmentFailure(done.fallen)


def _in_round(number: int, verdict: Verdict) -> Verdict:
    """Return a verdict whose counter-examples say in which round they were found."""
    checks = (
        replace(check, counterexamples=tuple(f"round {number}: {text}" for text in check.counterexamples))
        for check in verdict.checks
    )
    return replace(verdict, checks=tuple(checks))


def _sum(verdicts: Iterable[Verdict]) -> Verdict:
    """Return verdicts as one, in which every check stands once."""
    checks: dict[str, Check] = {}
    seconds = 0.0
    for verdict in verdicts:
        seconds += verdict.seconds
        for check in verdict.checks:
            checks[check.name] = added(checks[check.name], check) if check.name in checks else check
    return Verdict(tuple(checks.values()), seconds)
