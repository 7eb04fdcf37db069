"""The parent's half: the database of a trial, and the user's checks before, during and after the load."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.pool import plain
from sqlstress.engine.proofs import ProvenWork, examined
from sqlstress.engine.study import as_failure
from sqlstress.errors import Interrupted, SqlstressError
from sqlstress.report import Check
from sqlstress.report.results import Holder, Holds, WriteLock
from sqlstress.statistics.units import NS_PER_S
from sqlstress.system.processes import Apart
from sqlstress.user_work import AFTER, UNDER, checks, database, notes
from sqlstress.user_work.checks import Broken, Checker, Unchecked
from sqlstress.user_work.loading import limited
from sqlstress.user_work.lock_watch import Board, board_words
from sqlstress.user_work.rehearsal import Opening, content, rehearsed

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report import Trial
    from sqlstress.report.case import Case
    from sqlstress.report.results import Sighting
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place, SqlPlace


LOCK_WATCH = "lock watch"


class BrokenBefore(SqlstressError):
    """A check fails before anybody has worked."""

    exit_code = 1


class UserWork(ProvenWork):
    """One trial. An experiment inherits from it, and adds what it makes and proves beside."""

    place: SqlPlace

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self._carry = carry
        self.data = case.spec.data
        is_checked = bool(self.data.checks) and place.stores and case.verify != "none"
        self._checking = Checking(case, place.where) if is_checked else None
        self._in_rounds = not all(one.at_end for one in self.data.checks)
        self.companions: tuple[str, ...] = ()
        self.shared: tuple[Any, ...] = ()
        """First the board of the lock watch, if there is one; a workload adds its own behind."""
        if self._looks_on:
            self.companions, self.shared = (LOCK_WATCH,), (board_words(),)

    @property
    def _looks_on(self) -> bool:
        """Whether somebody looks from outside who holds the write lock."""
        return getattr(self.case.spec, "where", False) and self.place.stores

    @property
    def _is_rehearsed(self) -> bool:
        return self.place.stores and self.rehearsal_opening() is not None

    def rehearsal_opening(self) -> Opening | None:
        """Return the function that opens transactions for a rehearsal; None if there is none."""
        return None

    def made(self) -> Iterable[str]:
        """Return SQL of ours that is run after the user's setup."""
        return ()

    def build(self, pulse: Pulse) -> None:
        """Make the database that the options ask for."""
        database.make(self.place, self.data, self.made(), pulse)

    def ready(self, pulse: Pulse) -> None:
        """Do what is to be done when the database is there."""

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterable[Check]:
        """Return what is proved beside the user's checks."""
        return ()

    def create(self, pulse: Pulse) -> None:
        """Make the database, and see that all checks hold before anybody works."""
        notes.begin(self.place.where)
        self.build(pulse)
        if self._checking:
            self._checking.load()
        self.ready(pulse)
        if self._checking and (broken := self._checking.before(pulse)):
            raise BrokenBefore(
                f"before any load, {'; '.join(_lines(broken))}. Nothing was measured. Fix the setup or "
                "the check."
            )
        if self._is_rehearsed and ("rehearsed", self.case.spec) not in self._carry:
            self._carry["before", self.case.spec] = content(self.place.where)

    def meanwhile(self, window: Window, pulse: Pulse) -> None:
        if self._checking and self._in_rounds:
            self._checking.look(window, pulse)

    def ended(self, pulse: Pulse) -> None:
        if self._checking:
            self._checking.finish(pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        sound = self.sound(pulse)
        yield from sound
        yield from self.proofs(outcomes, pulse)
        if self._checking:
            checking = self._checking
            if self._in_rounds:
                yield checking.during()
            try:
                yield examined(AFTER, lambda: self._after(checking.after(pulse), outcomes))
            except Unchecked as error:
                if all(check.status != "failed" for check in sound):
                    raise
                # In a damaged database a check may not run, and that it is damaged is the verdict.
                yield Check(AFTER, "unknown", note=str(error).removesuffix("."))

    def release(self) -> None:
        if self._checking:
            self._checking.end()

    def discard(self) -> None:
        super().discard()
        notes.end(self.place.where)

    def _after(self, broken: Sequence[Broken], outcomes: Sequence[Outcome]) -> Check:
        late = {one.name for one in self.data.checks if one.at_end}
        if broken and late.issuperset(one.name for one in broken) and any(one.died for one in outcomes):
            why = f"a process ended early, so notes may be missing; {'; '.join(_lines(broken))}"
            return Check(AFTER, "unknown", len(self.data.checks), note=why)
        status = "failed" if broken else "ok"
        return Check(AFTER, status, len(self.data.checks), len(broken), tuple(_lines(broken)))

    def as_rehearsed(self) -> Case:
        """Return the case with what of it is rehearsed."""
        return self.case

    @property
    def _rehearsal_key(self) -> tuple[str, object]:
        return "rehearsed", self.case.spec

    @property
    def completing(self) -> str:
        is_due = self._is_rehearsed and self._rehearsal_key not in self._carry
        return "rehearsing" if is_due else ""

    def _suspicions(self, trial: Trial, pulse: Pulse) -> tuple[Sighting, ...]:
        """Return what is suspicious in the user's statements: rehearsed once, and told of each trial."""
        if not self._is_rehearsed:
            return ()
        key = self._rehearsal_key
        if key not in self._carry:
            before = self._carry.pop(("before", self.case.spec), {})
            case, where = self.as_rehearsed(), self.place.where
            medians_s = {name: (latency.p50_ns or 0) / NS_PER_S for name, latency in trial.latency.items()}
            opening = self.rehearsal_opening()
            assert opening
            self._carry[key] = rehearsed(case, where, before, opening, medians_s, pulse)
        found: tuple[Sighting, ...] = self._carry[key]
        return found

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        trial = replace(trial, sightings=(*trial.sightings, *self._suspicions(trial, pulse)))
        if self._checking:
            trial = replace(trial, error=trial.error or self._checking.failure or None)
        if self._looks_on:
            trial = replace(trial, write_lock=_write_lock(Board(self.shared[0]).read()))
        return trial


def _write_lock(seen: dict[str, Any] | None) -> WriteLock | None:
    """Return what the lock watch saw; None where it came to no end."""
    if not seen:
        return None
    holders = tuple(Holder(program, count, Holds(*held)) for program, count, held in seen["holders"])
    return WriteLock(**{**seen, "held": Holds(*seen["held"]), "holders": holders})


def _lines(broken: Sequence[Broken]) -> list[str]:
    return [f"{one.name}: {', '.join(one.examples)}" for one in broken]


# The user's checks, as the parent sees them: all run in one process, which it asks for each look.


STARTING_S = 30.0
"""How long a process may take until it runs the first check."""
PAUSE_S = 0.1
"""The shortest time between the beginnings of two rounds. It is twice as long as the round took, if that is
longer: they take half a processor at most."""


class Overdue(Unchecked):
    """The process had to be ended, since no answer came."""


class Checking:
    """Looks at a trial's data before the load, beside it and after it."""

    def __init__(self, case: Case, where: Path) -> None:
        data = case.spec.data
        self._case, self._where = plain(case), where
        self._limit_s = STARTING_S + data.check_timeout_s * len(data.checks)
        self._process = Apart("the process that runs the checks")
        self._begun_s: float | None = None
        """When the round began that is under way; None: there is none."""
        self._due_s = 0.0
        self._rounds = self._failed = 0
        self._broken: dict[str, Broken] = {}
        self._problem = ""
        """Why there are no further rounds; empty: nothing keeps them from running."""
        self.failure = ""
        """The same, where it is not for a check to say: its process died, or had to be ended."""

    def load(self) -> None:
        """Have the user's file imported, beside what else is to be done before the load."""
        self._process.begin(checks.load, self._case, self._where)

    def before(self, pulse: Pulse) -> list[Broken]:
        """Return the checks that fail. Raises Unchecked for one that can't be run, or takes too long."""
        pulse = self._limited(pulse)
        self._process.result(pulse)
        return self._process.call(pulse, checks.looked, Checker.broken, self._case, self._where)

    def after(self, pulse: Pulse) -> list[Broken]:
        """Do the same with the checks that wait until all processes have ended; no other look follows."""
        with self._process as process:
            return process.call(
                self._limited(pulse), checks.looked, Checker.broken_at_end, self._case, self._where
            )

    def look(self, window: Window, pulse: Pulse) -> None:
        """Have the next round run if it is time for it, beside workers of this window."""
        if self._begun_s is not None and self._process.has_answered():
            self.finish(pulse)
        now_s, is_over = time.monotonic(), time.perf_counter_ns() >= window.closes_ns
        if self._begun_s is None and not self._problem and not is_over and now_s >= self._due_s:
            self._begun_s = now_s
            look = partial(Checker.round, starts_ns=window.starts_ns)
            self._process.begin(checks.looked, look, self._case, self._where)

    def finish(self, pulse: Pulse) -> None:
        """Wait for the round that is under way."""
        if self._begun_s is None:
            return
        begun_s, self._begun_s = self._begun_s, None
        try:
            one: checks.Round = self._process.result(self._limited(pulse))
        except Interrupted:
            raise
        except Exception as error:
            self._problem = str(as_failure(error, self._case.driver)).removesuffix(".")
            if not isinstance(error, Unchecked) or isinstance(error, Overdue):
                self.failure = f"checks under load stopped: {self._problem}"
            return
        self._due_s = begun_s + max(PAUSE_S, 2 * one.took_s)
        if one.broken is None:
            return
        self._rounds += 1
        self._failed += bool(one.broken)
        for broken in one.broken:
            # The first counter-example explains the later ones.
            self._broken.setdefault(broken.name, broken)

    def during(self) -> Check:
        """Return what was seen beside the load."""
        if self._broken:
            lines = tuple(_lines(list(self._broken.values())))
            return Check(UNDER, "failed", self._rounds, self._failed, lines)
        if self._problem:
            return Check(UNDER, "unknown", self._rounds, note=self._problem)
        if not self._rounds:
            return Check(UNDER, "skipped", note="no check finished during the load")
        return Check(UNDER, "ok", self._rounds)

    def end(self) -> None:
        """End the process."""
        self._process.end()

    def reload(self, pulse: Pulse, change: Callable[[], None]) -> None:
        """Change the files of the trial while no process of the checks is there, which may have them open."""
        self._process.end()
        change()
        self.load()
        self._process.result(self._limited(pulse))

    def _limited(self, pulse: Pulse) -> Pulse:
        text = f"the checks took longer than {self._limit_s:g} s. Make them faster, or raise --check-timeout."
        return limited(pulse, self._limit_s, Overdue(text))
