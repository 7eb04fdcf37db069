"""Crash tests by killing: writers are killed over and over, and after every kill the files are examined."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import NamedTuple

from sqlstress.analysis.wording import size
from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.ordered import Ledger, shared_words
from sqlstress.engine.pool import Ended, Pool
from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, Steps, kept_reason
from sqlstress.engine.trial import READY_EACH_S, READY_S, TrialRunner
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.crash.database import Acknowledged, Database, Remains
from sqlstress.experiments.crash.spec import SURVIVORS, CaseSelection, Kills
from sqlstress.experiments.crash.worker import MOST_WRITERS, RECORDS
from sqlstress.report import Report, Verdict
from sqlstress.report.case import Case
from sqlstress.report.results import Tally, added
from sqlstress.statistics.units import plural
from sqlstress.system.child import Pipe
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import SPAWNING, TICK_S, Starter, wait_some
from sqlstress.targets.place import Place
from sqlstress.targets.sqlite.place import SqlitePlace

LOOK_S = 0.001
END_S = 30.0


class Victims(Pool):
    """The writers of one round, who have the numbers from 1 on."""

    def __init__(self, case: Case, place: Place, before: int, starter: Starter = SPAWNING) -> None:
        """`before` is the number of writers that the database has had."""
        words = shared_words(case.concurrency)
        super().__init__(case, place, before, (words,), starter=starter)
        self.before = before
        self.ledgers = {number: Ledger(words, number) for number in range(1, case.concurrency + 1)}
        self.alive = set(self.ledgers)

    def begin(self) -> None:
        """Let everybody open the files and write."""
        now = time.perf_counter_ns()
        self.go(Window(now, now, FOREVER_NS))

    def acknowledged(self) -> int:
        """Return how many transactions the living were told are done."""
        return sum(self.ledgers[number].acknowledged() for number in self.alive)

    def await_more(self, than: int, timeout_s: float, pulse: Pulse) -> bool:
        """Wait until the living have been told of more transactions; return whether they were."""
        return self._until(lambda: self.acknowledged() > than, timeout_s, LOOK_S, pulse)

    def let_write(self, seconds: float, pulse: Pulse) -> None:
        """Wait; less when a writer ends by itself."""
        self._until(lambda: False, seconds, min(seconds, TICK_S), pulse)

    def _until(self, condition: Callable[[], bool], timeout_s: float, look_s: float, pulse: Pulse) -> bool:
        end = time.monotonic() + timeout_s
        while not condition():
            left = end - time.monotonic()
            if left <= 0 or wait_some(self._living_pipes(), min(left, look_s)):
                return condition()
            pulse()
        return True

    def kill(self, numbers: Collection[int]) -> None:
        """Kill writers, one right after the other, and wait until they are gone."""
        struck = [self._processes[number - 1] for number in numbers]
        for process in struck:
            process.kill()
        self.alive.difference_update(numbers)
        for process in struck:
            process.join(END_S)
            if process.exitcode is None:
                raise EnvironmentFailure(
                    f"process {process.pid} was killed but has not ended. Check that its disk responds."
                )

    def fallen(self) -> Ended | None:
        """Return a writer who has ended by itself; None when there is none."""
        messages = map(self._receive, wait_some(self._living_pipes(), 0.0))
        return next((message for message in messages if isinstance(message, Ended)), None)

    def _living_pipes(self) -> list[Pipe]:
        return [pipe for pipe, number in self._pipes.items() if number in self.alive]


GOES_ON_S = 30.0
"""Within this time a transaction is acknowledged, however slow the disk: a dead process holds no lock."""

HELD_S = 0.1
"""So long a first transaction may wait for those who examined the files: one may want them for itself."""


class Round:
    """The writers of a round, and what was found of them."""

    def __init__(self, database: Database, victims: Victims, strike: Strike, pulse: Pulse) -> None:
        self.fallen: str | None = None
        """Why a writer ended that nobody had killed; None when none did."""
        self.verdicts: list[Verdict] = []
        """Of each examination, and of those who had to go on."""
        self._database, self._victims, self._strike, self._pulse = database, victims, strike, pulse
        self._told: dict[int, Acknowledged] = {}
        self._remains = Remains(0, 0, 0)
        self._finished = 0

    def kill(self) -> None:
        """Let the writers begin, and kill all of them, at one moment or at two."""
        victims, strike = self._victims, self._strike
        victims.call()
        failed = victims.wait_ready(READY_S + READY_EACH_S * len(strike.order), self._pulse)
        if failed:
            raise EnvironmentFailure(f"{victims.name(failed[0].worker)} could not start: {failed[0].reason}")
        if not strike.held:
            self._database.release()
        victims.begin()
        # Wait for the first transaction; who examined the files does not stand in its way for long.
        if not strike.opening and not victims.await_more(0, HELD_S, self._pulse):
            self._database.release()
            if not victims.await_more(0, GOES_ON_S, self._pulse):
                self._look_for_fallen(f"no transaction was acknowledged within {GOES_ON_S:.0f} s")
        victims.let_write(strike.after_s, self._pulse)
        if strike.alone:
            self._kill_one(strike.order[0])
        self._look_for_fallen()
        self._database.release()
        victims.kill(sorted(victims.alive, key=strike.order.index))
        self._told = self._acknowledged_now()
        self._remains = self._database.remains()

    def _kill_one(self, victim: int) -> None:
        """Kill one writer, examine the files while the others go on, and see that they do."""
        self._victims.kill([victim])
        before = self._victims.acknowledged()
        least = self._acknowledged_now()
        examined = self._database.examine()
        most = self._acknowledged_now()
        self._database.release()
        told = {writer: Acknowledged(least[writer].least, most[writer].most) for writer in least}
        self.verdicts.append(self._database.judge(examined, told))
        survival = Tally(SURVIVORS)
        survival.checked += 1
        if not self._victims.await_more(before, GOES_ON_S, self._pulse):
            reason = self._look_for_fallen() or f"nothing was acknowledged for {GOES_ON_S:.0f} s"
            survival.problem(
                f"after writer {self._victims.before + victim} was killed the others did not go on: {reason}"
            )
        self.verdicts.append(Verdict((survival.check(),)))
        self._victims.let_write(self._strike.then_s, self._pulse)

    def _look_for_fallen(self, otherwise: str | None = None) -> str | None:
        """Look whether a writer has ended by itself; return why, the first of them, or else `otherwise`."""
        ended = self._victims.fallen()
        found = f"{self._victims.name(ended.worker)}: {ended.reason}" if ended else otherwise
        self.fallen = self.fallen or found
        return self.fallen

    def _acknowledged_now(self) -> dict[int, Acknowledged]:
        """Return what each writer has been told by now."""
        victims, found = self._victims, {}
        for number, ledger in victims.ledgers.items():
            # A living one goes on meanwhile: it may have finished one transaction and begun another.
            more = 1 if number in victims.alive else ledger.under_way()
            done = ledger.acknowledged()
            found[victims.before + number] = Acknowledged(done, done + more)
        return found

    def examine(self) -> None:
        """Open the files again, which recovers them, and hold what they have against what was told."""
        examined = self._database.examine()
        self.verdicts.append(self._database.judge(examined, self._told))
        self._finished = self._database.settle(examined, self._told)

    def added_to(self, kills: Kills) -> Kills:
        """Return what has been found by now, with this round."""
        told = self._told.values()
        under_way = sum(most - least for least, most in told)
        return replace(
            kills,
            rounds=kills.rounds + 1,
            alone=kills.alone + self._strike.alone,
            kills=kills.kills + len(told),
            opening=kills.opening + sum(one.most == 0 for one in told),
            acknowledged=kills.acknowledged + sum(one.least for one in told),
            finished=kills.finished + self._finished,
            undone=kills.undone + under_way - self._finished,
            wals=kills.wals + self._remains.wals,
            hot_journals=kills.hot_journals + self._remains.hot_journals,
            checkpoints=kills.checkpoints + self._remains.checkpoints,
        )


LONGEST_S = 0.1
"""Writers are killed within this time from their first acknowledged transaction."""
OPENING_SHARE = 0.25
"""Share of the rounds whose moment counts from when the writers begin to open the files."""
OPENING_S = 0.02
"""Within this time they are killed then: to open files, and to recover them, takes milliseconds."""
ALONE_SHARE = 0.35
"""Share of the rounds in which one writer is killed before the others."""
HELD_SHARE = 0.5
"""Share of the rounds that find the WAL of the round before: somebody has the files open until they begin."""


class Strike(NamedTuple):
    """How the writers of one round are killed."""

    opening: bool
    """Whether the moment counts from when they begin to open the files; else from their first transaction."""
    after_s: float
    """The moment at which the first of them is killed."""
    order: tuple[int, ...]
    """The writers, in the order in which they are killed."""
    alone: bool
    """Whether the first one is killed alone, and the others go on."""
    then_s: float
    """How long they go on before they are killed too."""
    held: bool
    """Whether who examined the files still has them open when the writers begin."""


def draw(seed: int, number: int, writers: int) -> Strike:
    """Draw how so many writers are killed in a round."""
    random = Random(f"{seed}:strike:{number}")
    opening = random.random() < OPENING_SHARE
    return Strike(
        opening=opening,
        after_s=random.uniform(0.0, OPENING_S if opening else LONGEST_S),
        order=tuple(random.sample(range(1, writers + 1), writers)),
        alone=random.random() < ALONE_SHARE and writers > 1,
        then_s=random.uniform(0.0, LONGEST_S),
        held=random.random() < HELD_SHARE,
    )


ROUNDS_EACH = 50
"""Rounds that a database serves: so many recoveries on top of each other, and a log that stays short."""


def how_far(kills: Kills) -> Progress:
    """Return which round was the last one, what was found by then, and the time that is left."""
    left_s = kills.seconds / kills.rounds * (kills.planned - kills.rounds)
    note = f"{plural(kills.kills, 'kill')}, {kills.lost:,} lost, {kills.torn:,} torn"
    return Progress(f"round {kills.rounds} of {kills.planned}", kills.rounds, kills.planned, note, left_s)


class KillStudy:
    """Kills the writers of a case, round after round; a step is a round."""

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
                kills = current.added_to(self.kills)
                verdict = _sum(kills, current.verdicts)
                self.kills = replace(kills, verdict=verdict, seconds=time.perf_counter() - begun)
                runner.observer.progress(how_far(self.kills))
                yield
                if any(one.status == "failed" for one in current.verdicts):
                    if runner.keep:
                        database.set_aside(f"round-{self.kills.rounds}")
                    self._create(database)
                elif current.fallen:
                    raise EnvironmentFailure(current.fallen)

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


LARGEST = 64 << 20
"""Bytes of all records: they are read again after every kill."""


def study_of(cases: Sequence[Case], selection: CaseSelection) -> KillStudy:
    """Return the study that options ask for. Raises UsageError for more than can be read after every kill."""
    (case,) = cases
    needed = RECORDS * case.spec.batch * case.spec.value_size * case.buckets
    if needed > LARGEST:
        raise UsageError(
            f"each kill would read {size(needed)} of rows, and the limit is {size(LARGEST)}. Lower "
            "--batch, --value-size or --buckets."
        )
    return KillStudy(Kills(case, selection.rounds))


def _sum(kills: Kills, verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of all rounds, in which every check stands once, with those of the last round.

    Its counter-examples say in which round they were found.
    """
    checks = {check.name: check for check in kills.verdict.checks}
    seconds = kills.verdict.seconds
    for verdict in verdicts:
        seconds += verdict.seconds
        for check in verdict.checks:
            texts = tuple(f"round {kills.rounds}: {text}" for text in check.counterexamples)
            found = replace(check, counterexamples=texts)
            checks[check.name] = added(checks[check.name], found) if check.name in checks else found
    return Verdict(tuple(checks.values()), seconds)
