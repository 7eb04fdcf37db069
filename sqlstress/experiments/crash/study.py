"""Crash tests by killing: writers are killed over and over, and after every kill the files are examined."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from sqlstress.engine.failure import kept_reason
from sqlstress.engine.observer import Progress
from sqlstress.engine.session import Bench
from sqlstress.engine.study import Steps
from sqlstress.engine.trial import TrialRunner
from sqlstress.engine.victims import Victims
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.crash.database import Database
from sqlstress.experiments.crash.records import MOST_WRITERS
from sqlstress.experiments.crash.result import Kills
from sqlstress.experiments.crash.round import Round, draw
from sqlstress.experiments.crash.spec import Extra
from sqlstress.report import Check, Report, Verdict
from sqlstress.report.case import Case
from sqlstress.report.problems import added
from sqlstress.targets.place import Place
from sqlstress.targets.sqlite.place import SqlitePlace

ROUNDS_EACH = 50
"""Rounds that a database serves: so many recoveries on top of each other, and a log that stays short."""

SAVE_EVERY_S = 1.0


def how_far(kills: Kills) -> Progress:
    """Return which round was the last one, what was found by then, and the time that is left."""
    left_s = kills.seconds / kills.rounds * (kills.planned - kills.rounds)
    note = f"{kills.kills:,} kills, {kills.lost:,} lost, {kills.torn:,} torn"
    return Progress(f"round {kills.rounds} of {kills.planned}", kills.rounds, kills.planned, note, left_s)


class KillStudy:
    """Kills the writers of a case, round after round; a step is a round."""

    save_every_s = SAVE_EVERY_S

    def __init__(self, kills: Kills) -> None:
        """`kills` says what is to be done, and has what was found."""
        self.kills = kills
        self._rounds_each = min(ROUNDS_EACH, MOST_WRITERS // kills.case.concurrency)

    def report(self, blank: Report) -> Report:
        """Return what was found by now."""
        return replace(blank, results={"crash": self.kills})

    def steps(self, bench: Bench) -> Steps:
        """Do all rounds, or those before something else than a kill ended a writer."""
        database = Database(SqlitePlace(self.kills.case, bench.runner.folder))
        try:
            yield from self._rounds(bench.runner, database)
        except Exception as problem:
            error = kept_reason(problem, self.kills.case.driver, nothing_yet=not self.kills.rounds)
            self.kills = replace(self.kills, error=error)
        finally:
            database.release()
            bench.runner.discard(database.remove)

    def _rounds(self, runner: TrialRunner, database: Database) -> Steps:
        case, begun = self.kills.case, time.perf_counter()
        with ExitStack() as running:
            victims = self._start(0, runner, database.place, running)
            for number in range(self.kills.planned):
                if number % self._rounds_each == 0:
                    self._create(database)
                strike = draw(case.seed, number, case.concurrency)
                current = Round(database, victims, strike, runner.signals.check)
                current.kill()
                running.close()
                if number + 1 < self.kills.planned:
                    # They start while the files are examined.
                    victims = self._start(number + 1, runner, database.place, running)
                current.examine()
                self._take(current, time.perf_counter() - begun)
                runner.observer.progress(how_far(self.kills))
                yield
                self._go_on_after(current, runner, database)

    def _start(self, number: int, runner: TrialRunner, place: Place, running: ExitStack) -> Victims:
        """Start the writers of a round; they open nothing before they are told to begin."""
        before = number % self._rounds_each * self.kills.case.concurrency
        victims = running.enter_context(Victims(self.kills.case, place, before, runner.starter))
        victims.start(runner.signals.check)
        return victims

    def _create(self, database: Database) -> None:
        """Go on with a new database."""
        effective = database.create()
        self.kills = replace(self.kills, effective=effective, databases=self.kills.databases + 1)

    def _take(self, done: Round, seconds: float) -> None:
        """Enter what a round has found."""
        kills = done.added_to(self.kills)
        verdict = _sum([kills.verdict, *(_in_round(kills.rounds, one) for one in done.verdicts)])
        self.kills = replace(kills, verdict=verdict, seconds=seconds)

    def _go_on_after(self, done: Round, runner: TrialRunner, database: Database) -> None:
        if any(one.status == "failed" for one in done.verdicts):
            if runner.keep:
                database.set_aside(f"round-{self.kills.rounds}")
            self._create(database)
        elif done.fallen:
            raise EnvironmentFailure(done.fallen)


def asked(cases: Sequence[Case], extra: Extra) -> KillStudy:
    """Return the study that options ask for."""
    return KillStudy(Kills(cases[0], extra.rounds))


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
