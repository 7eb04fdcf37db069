"""Run of a crash test: kills the writers in each round, and examines the files after each kill.

The connections of an examination may stay open until the next round. A writer's bounds are the least and the
largest number of its transactions that the files may have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import NamedTuple

from sqlstress.analysis.wording import size
from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.ordered import OperationLedger, shared_words
from sqlstress.engine.pool import Pool, WorkerExit
from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, Steps, kept_reason
from sqlstress.engine.trial import READY_PER_WORKER_S, READY_S, TrialRunner
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.crash.database import CrashDatabase, Remains
from sqlstress.experiments.crash.proof import AcknowledgedRecords
from sqlstress.experiments.crash.spec import SURVIVORS, CrashSelection, Kills
from sqlstress.experiments.crash.worker import MOST_WRITERS, RECORDS
from sqlstress.report import Report, Verdict
from sqlstress.report.case import Case
from sqlstress.report.results import CheckCounter, added
from sqlstress.statistics.units import plural
from sqlstress.system.child import Pipe
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import SPAWNING, TICK_S, Starter, wait_readable
from sqlstress.targets.place import Place
from sqlstress.targets.sqlite.place import SqlitePlace

LOOK_S = 0.001
"""Seconds between two readings of the number of acknowledged transactions."""
END_S = 30.0
"""Time limit for a killed process to end, in seconds."""


class Victims(Pool):
    """Writer processes of one round, numbered from 1, which write until they are killed."""

    def __init__(self, case: Case, place: Place, before: int, starter: Starter = SPAWNING) -> None:
        """`before` is the number of writers in earlier rounds: writer 1 is number `before` + 1 of all."""
        words = shared_words(case.concurrency)
        super().__init__(case, place, before, (words,), starter=starter)
        self.before = before
        self.ledgers = {number: OperationLedger(words, number) for number in range(1, case.concurrency + 1)}
        self.alive = set(self.ledgers)

    def begin(self) -> None:
        """Let all writers open the files and write."""
        now = time.perf_counter_ns()
        self.go(Window(now, now, FOREVER_NS))

    def acknowledged(self) -> int:
        """Return the number of acknowledged transactions (whose COMMIT returned) of living writers."""
        return sum(self.ledgers[number].acknowledged() for number in self.alive)

    def await_more(self, than: int, timeout_s: float, pulse: Pulse) -> bool:
        """Wait until living writers have acknowledged over `than` transactions; return whether they have.

        The wait also ends after `timeout_s`, or if a writer ends by itself.
        """
        return self._wait_for(lambda: self.acknowledged() > than, timeout_s, LOOK_S, pulse)

    def let_write(self, seconds: float, pulse: Pulse) -> None:
        """Wait for `seconds`, or until a writer ends by itself."""
        self._wait_for(lambda: False, seconds, min(seconds, TICK_S), pulse)

    def _wait_for(self, condition: Callable[[], bool], timeout_s: float, look_s: float, pulse: Pulse) -> bool:
        end_s = time.monotonic() + timeout_s
        while not condition():
            left_s = end_s - time.monotonic()
            if left_s <= 0 or wait_readable(self._living_pipes(), min(left_s, look_s)):
                return condition()
            pulse()
        return True

    def kill(self, numbers: Collection[int]) -> None:
        """Kill writers and wait for their end. Raises EnvironmentFailure after END_S seconds."""
        killed = [self._processes[number - 1] for number in numbers]
        for process in killed:
            process.kill()
        self.alive.difference_update(numbers)
        for process in killed:
            process.join(END_S)
            if process.exitcode is None:
                raise EnvironmentFailure(
                    f"process {process.pid} was killed but has not ended. Check that its disk responds."
                )

    def fallen(self) -> WorkerExit | None:
        """Return the exit of a writer that ended by itself; None if no writer did."""
        messages = map(self._receive, wait_readable(self._living_pipes(), 0.0))
        return next((message for message in messages if isinstance(message, WorkerExit)), None)

    def _living_pipes(self) -> list[Pipe]:
        return [pipe for pipe, number in self._pipes.items() if number in self.alive]


GOES_ON_S = 30.0
"""Time limit for living writers to acknowledge a transaction, in seconds: enough for a slow disk."""

HELD_S = 0.1
"""Seconds to wait for the first acknowledgement before the examining connections are closed.

An open connection may prevent an exclusive lock that a writer needs.
"""


class KillRound:
    """One round of a crash test: kills all writers, and examines the files."""

    def __init__(self, database: CrashDatabase, victims: Victims, plan: KillPlan, pulse: Pulse) -> None:
        self.fallen: str | None = None
        """Problem of a writer: it ended by itself, or acknowledged no transaction. None without a problem."""
        self.verdicts: list[Verdict] = []
        """Verdicts of all examinations, and of the check that surviving writers continue."""
        self._database, self._victims, self._plan, self._pulse = database, victims, plan, pulse
        self._bounds: dict[int, AcknowledgedRecords] = {}
        self._remains = Remains(0, 0, 0)
        self._finished = 0

    def kill(self) -> None:
        """Let the writers begin, then kill them as planned: all together, or one first and the rest later."""
        victims, plan = self._victims, self._plan
        victims.call()
        failed = victims.wait_ready(READY_S + READY_PER_WORKER_S * len(plan.order), self._pulse)
        if failed:
            raise EnvironmentFailure(f"{victims.name(failed[0].worker)} could not start: {failed[0].reason}")
        if not plan.held:
            self._database.release()
        victims.begin()
        # The examining connections may prevent the first transaction, so they are closed after HELD_S.
        if not plan.opening and not victims.await_more(0, HELD_S, self._pulse):
            self._database.release()
            if not victims.await_more(0, GOES_ON_S, self._pulse):
                self._find_problem(f"no transaction was acknowledged within {GOES_ON_S:.0f} s")
        victims.let_write(plan.after_s, self._pulse)
        if plan.alone:
            self._kill_one(plan.order[0])
        self._find_problem()
        self._database.release()
        victims.kill(sorted(victims.alive, key=plan.order.index))
        self._bounds = self._acknowledged_now()
        self._remains = self._database.remains()

    def _kill_one(self, victim: int) -> None:
        """Kill one writer, examine the files, and check that the surviving writers continue."""
        self._victims.kill([victim])
        acknowledged = self._victims.acknowledged()
        least = self._acknowledged_now()
        examined = self._database.examine()
        most = self._acknowledged_now()
        self._database.release()
        bounds = {writer: AcknowledgedRecords(least[writer].least, most[writer].most) for writer in least}
        self.verdicts.append(self._database.judge(examined, bounds))
        survival = CheckCounter(SURVIVORS)
        survival.checked += 1
        if not self._victims.await_more(acknowledged, GOES_ON_S, self._pulse):
            reason = self._find_problem() or f"nothing was acknowledged for {GOES_ON_S:.0f} s"
            survival.problem(
                f"after writer {self._victims.before + victim} was killed the others did not go on: {reason}"
            )
        self.verdicts.append(Verdict((survival.check(),)))
        self._victims.let_write(self._plan.then_s, self._pulse)

    def _find_problem(self, otherwise: str | None = None) -> str | None:
        """Return the problem of a writer, if any. The attribute `fallen` keeps the first problem.

        If a writer ended by itself, the problem is the reason of its end. If not, it is `otherwise`.
        """
        ended = self._victims.fallen()
        reason = f"{self._victims.name(ended.worker)}: {ended.reason}" if ended else otherwise
        self.fallen = self.fallen or reason
        return self.fallen

    def _acknowledged_now(self) -> dict[int, AcknowledgedRecords]:
        victims, bounds = self._victims, {}
        for number, ledger in victims.ledgers.items():
            # A living writer may begin a transaction at any moment, so the files may have one more than the
            # acknowledged transactions. A dead writer's ledger shows whether a transaction was in progress.
            more = 1 if number in victims.alive else ledger.under_way()
            done = ledger.acknowledged()
            bounds[victims.before + number] = AcknowledgedRecords(done, done + more)
        return bounds

    def examine(self) -> None:
        """Recover and read the files; compare them with the acknowledged transactions."""
        examined = self._database.examine()
        self.verdicts.append(self._database.judge(examined, self._bounds))
        self._finished = self._database.settle(examined, self._bounds)

    def added_to(self, kills: Kills) -> Kills:
        """Return `kills` plus the results of this round."""
        bounds = self._bounds.values()
        under_way = sum(most - least for least, most in bounds)
        return replace(
            kills,
            rounds=kills.rounds + 1,
            alone=kills.alone + self._plan.alone,
            kills=kills.kills + len(bounds),
            opening=kills.opening + sum(bound.most == 0 for bound in bounds),
            acknowledged=kills.acknowledged + sum(bound.least for bound in bounds),
            finished=kills.finished + self._finished,
            undone=kills.undone + under_way - self._finished,
            wals=kills.wals + self._remains.wals,
            hot_journals=kills.hot_journals + self._remains.hot_journals,
            checkpoints=kills.checkpoints + self._remains.checkpoints,
        )


LONGEST_S = 0.1
"""Latest time of a kill, in seconds after the first acknowledgement."""
OPENING_SHARE = 0.25
"""Share of the rounds that kill writers while they open the files."""
OPENING_S = 0.02
"""Latest time of a kill during opening, in seconds. Recovery takes milliseconds."""
ALONE_SHARE = 0.35
"""Share of the rounds in which one writer is killed first."""
HELD_SHARE = 0.5
"""Share of the rounds in which `KillPlan.held` is true, so that the WAL is not removed."""


class KillPlan(NamedTuple):
    """Plan of the kills in one round."""

    opening: bool
    """Whether the first kill follows the opening of the files, not the first acknowledged transaction."""
    after_s: float
    """Time of the first kill, in seconds after the opening or the first acknowledgement."""
    order: tuple[int, ...]
    """Numbers of the writers in the order of kills."""
    alone: bool
    """Whether one writer is killed first, and the other writers must continue for a while."""
    then_s: float
    """Time for which surviving writers continue after the examination of the first kill, in seconds."""
    held: bool
    """Whether the connections of the previous round's examination stay open when the writers begin.

    If they are closed first, SQLite removes the WAL. They are closed before the last kill, or earlier: see
    HELD_S.
    """


def draw(seed: int, number: int, writers: int) -> KillPlan:
    """Return a random plan of the kills in round `number`, equal for an equal seed."""
    random = Random(f"{seed}:strike:{number}")
    opening = random.random() < OPENING_SHARE
    return KillPlan(
        opening=opening,
        after_s=random.uniform(0.0, OPENING_S if opening else LONGEST_S),
        order=tuple(random.sample(range(1, writers + 1), writers)),
        alone=random.random() < ALONE_SHARE and writers > 1,
        then_s=random.uniform(0.0, LONGEST_S),
        held=random.random() < HELD_SHARE,
    )


ROUNDS_EACH = 50
"""Number of rounds per database: enough for repeated recoveries, with a short log table."""


def progress_of(kills: Kills) -> Progress:
    """Return the progress for display: last round, results so far, time left."""
    left_s = kills.seconds / kills.rounds * (kills.planned - kills.rounds)
    note = f"{plural(kills.kills, 'kill')}, {kills.lost_count:,} lost, {kills.torn_count:,} torn"
    return Progress(f"round {kills.rounds} of {kills.planned}", kills.rounds, kills.planned, note, left_s)


class KillStudy:
    """Run of a crash test. Each step is a round."""

    def __init__(self, kills: Kills) -> None:
        """`kills` has the case and the number of rounds, but no results yet."""
        self.kills = kills
        self._rounds_each = min(ROUNDS_EACH, MOST_WRITERS // kills.case.concurrency)

    def report(self, blank: Report) -> Report:
        """Return the report so far. `blank` is the report without results."""
        return replace(blank, results={"crash": self.kills})

    def steps(self, bench: Bench) -> Steps:
        """Run all rounds; stop early after an error, or if a writer ends by itself."""
        database = CrashDatabase(SqlitePlace(self.kills.case, bench.runner.folder))
        try:
            yield from self._rounds(bench.runner, database)
        except Exception as problem:
            error = kept_reason(problem, self.kills.case.driver, nothing_yet=not self.kills.rounds)
            self.kills = replace(self.kills, error=error)
        finally:
            database.release()
            bench.runner.discard(database.remove)

    def _rounds(self, runner: TrialRunner, database: CrashDatabase) -> Steps:
        case, started_s = self.kills.case, time.perf_counter()
        with ExitStack() as running:
            victims = self._start(0, runner, database.place, running)
            for number in range(self.kills.planned):
                if number % self._rounds_each == 0:
                    self._create(database)
                plan = draw(case.seed, number, case.concurrency)
                current = KillRound(database, victims, plan, runner.signals.check)
                current.kill()
                running.close()
                if number + 1 < self.kills.planned:
                    # The next round's writers start during the examination.
                    victims = self._start(number + 1, runner, database.place, running)
                current.examine()
                kills = current.added_to(self.kills)
                verdict = _sum(kills, current.verdicts)
                self.kills = replace(kills, verdict=verdict, seconds=time.perf_counter() - started_s)
                runner.observer.progress(progress_of(self.kills))
                yield
                if any(checked.status == "failed" for checked in current.verdicts):
                    if runner.keep:
                        database.set_aside(f"round-{self.kills.rounds}")
                    self._create(database)
                elif current.fallen:
                    raise EnvironmentFailure(current.fallen)

    def _start(self, number: int, runner: TrialRunner, place: Place, running: ExitStack) -> Victims:
        """Start a round's writer processes. They open no file before `Victims.begin`."""
        earlier_writers = number % self._rounds_each * self.kills.case.concurrency
        victims = running.enter_context(Victims(self.kills.case, place, earlier_writers, runner.starter))
        victims.start(runner.signals.check)
        return victims

    def _create(self, database: CrashDatabase) -> None:
        effective = database.create()
        self.kills = replace(self.kills, effective=effective, databases=self.kills.databases + 1)


LARGEST = 64 << 20
"""Maximum size of all records together, in bytes. All records are read after every kill."""


def study_of(cases: Sequence[Case], selection: CrashSelection) -> KillStudy:
    """Return the requested crash test. Raises UsageError if records are too large."""
    (case,) = cases
    needed = RECORDS * case.spec.batch * case.spec.value_size * case.buckets
    if needed > LARGEST:
        raise UsageError(
            f"each kill would read {size(needed)} of rows, and the limit is {size(LARGEST)}. Lower "
            "--batch, --value-size or --buckets."
        )
    return KillStudy(Kills(case, selection.rounds))


def _sum(kills: Kills, verdicts: Iterable[Verdict]) -> Verdict:
    checks = {check.name: check for check in kills.verdict.checks}
    seconds = kills.verdict.seconds
    for verdict in verdicts:
        seconds += verdict.seconds
        for check in verdict.checks:
            texts = tuple(f"round {kills.rounds}: {text}" for text in check.counterexamples)
            check_of_round = replace(check, counterexamples=texts)
            checks[check.name] = (
                added(checks[check.name], check_of_round) if check.name in checks else check_of_round
            )
    return Verdict(tuple(checks.values()), seconds)
