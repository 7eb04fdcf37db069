"""Parent process's part of a trial with the user's own work: creates the database, starts the checks.

A separate process runs the user's checks before, during and after the load. During the load, the checks run
in rounds: a round runs each check once, except for checks that run only at the end. After the load, a
rehearsal calls the user's transactions again and searches for possible races.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.omissions import REHEARSAL, is_omitted
from sqlstress.engine.pool import to_namespace
from sqlstress.engine.proofs import ProvenWork, examined
from sqlstress.engine.study import as_failure
from sqlstress.errors import Interrupted, SqlstressError
from sqlstress.report import Check
from sqlstress.report.results import Holder, Holds, WriteLock
from sqlstress.statistics.units import NS_PER_S
from sqlstress.system.processes import ChildCaller
from sqlstress.user_work import AFTER, UNDER, checks, database, notes
from sqlstress.user_work.checks import Checker, CheckFailure, CheckNotRun
from sqlstress.user_work.loading import limit_time
from sqlstress.user_work.lock_watch import SharedSlot, slot_memory
from sqlstress.user_work.rehearsal import Opener, content, rehearse

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report import Trial
    from sqlstress.report.case import Case
    from sqlstress.report.results import Sighting
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place, SqlPlace


LOCK_WATCH = "lock watch"


class FailedBeforeLoad(SqlstressError):
    """A check of the user fails before the load, so that nothing is measured."""

    exit_code = 1


class UserWork(ProvenWork):
    """Base class of the parent process's part of sql, app and exec: prepares and verifies a trial."""

    place: SqlPlace

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self._carry = carry
        self.data = case.spec.data
        is_checked = bool(self.data.checks) and place.stores and case.verify != "none"
        self._checking = CheckRunner(case, place.where) if is_checked else None
        self._checks_under_load = not all(check.at_end for check in self.data.checks)
        self.companions: tuple[str, ...] = ()
        self.shared: tuple[Any, ...] = ()
        """Shared memory. With --where, the first item is that of the lock watch. Subclasses append theirs."""
        if self._watches_lock:
            self.companions, self.shared = (LOCK_WATCH,), (slot_memory(),)

    @property
    def _watches_lock(self) -> bool:
        return getattr(self.case.spec, "where", False) and self.place.stores

    @property
    def _is_rehearsed(self) -> bool:
        return self.place.stores and self.rehearsal_opening() is not None and not is_omitted(REHEARSAL)

    @property
    def _rehearsal_is_due(self) -> bool:
        return self._is_rehearsed and self._rehearsal_key not in self._carry

    @property
    def files_before(self) -> Path:
        """Existing folder with the trial's files, as they are before the load.

        `create` reads these files, so that a rehearsal can later run on a copy of them.
        """
        return self.place.where

    def rehearsal_opening(self) -> Opener | None:
        """Return the function that opens the database for a rehearsal, see `Opener`.

        Return None for experiments without a rehearsal.
        """
        return None

    def own_sql(self) -> Iterable[str]:
        """Return SQL statements of sqlstress itself, to run after the user's setup."""
        return ()

    def build(self, pulse: Pulse) -> None:
        """Create the database as the options describe it."""
        database.make(self.place, self.data, self.own_sql(), pulse)

    def ready(self, pulse: Pulse) -> None:
        """Do further preparations after the database was created. Subclasses override this method."""

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterable[Check]:
        """Return the results of checks that the experiment adds to the user's checks; none by default."""
        return ()

    def create(self, pulse: Pulse) -> None:
        """Create the database and run the user's checks. Raises FailedBeforeLoad if a check fails."""
        notes.begin(self.place.where)
        self.build(pulse)
        if self._checking:
            self._checking.load()
        self.ready(pulse)
        if self._checking and (broken := self._checking.before(pulse)):
            raise FailedBeforeLoad(
                f"before any load, {'; '.join(_lines(broken))}. Nothing was measured. Fix the setup or "
                "the check."
            )
        if self._rehearsal_is_due:
            self._carry["before", self.case.spec] = content(self.files_before)

    def meanwhile(self, window: Window, pulse: Pulse) -> None:
        super().meanwhile(window, pulse)
        if self._checking and self._checks_under_load:
            self._checking.look(window, pulse)

    def ended(self, pulse: Pulse) -> None:
        # This closes the files of the database that this process has open. It must happen before the process
        # connects: on POSIX, closing them later would drop the locks of its connection.
        super().release()
        if self._checking:
            self._checking.finish(pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        sound = self.sound(pulse)
        yield from sound
        yield from self.proofs(outcomes, pulse)
        if self._checking:
            checking = self._checking
            if self._checks_under_load:
                yield checking.during()
            try:
                yield examined(AFTER, lambda: self._final_check(checking.after(pulse), outcomes))
            except CheckNotRun as error:
                if all(check.status != "failed" for check in sound):
                    raise
                # The user's check cannot run because the database is damaged, which fails the trial anyway.
                yield Check(AFTER, "unknown", note=str(error).removesuffix("."))

    def release(self) -> None:
        super().release()
        if self._checking:
            self._checking.end()

    def discard(self) -> None:
        super().discard()
        notes.end(self.place.where)

    def _final_check(self, broken: Sequence[CheckFailure], outcomes: Sequence[Outcome]) -> Check:
        late = {check.name for check in self.data.checks if check.at_end}
        if (
            broken
            and late.issuperset(check.name for check in broken)
            and any(outcome.died for outcome in outcomes)
        ):
            why = f"a process ended early, so notes may be missing; {'; '.join(_lines(broken))}"
            return Check(AFTER, "unknown", len(self.data.checks), note=why)
        status = "failed" if broken else "ok"
        return Check(AFTER, status, len(self.data.checks), len(broken), tuple(_lines(broken)))

    def as_rehearsed(self) -> Case:
        """Return the case that the rehearsal runs. Subclasses may change its options for this purpose."""
        return self.case

    @property
    def _rehearsal_key(self) -> tuple[str, object]:
        return "rehearsed", self.case.spec

    @property
    def completing(self) -> str:
        return "rehearsing" if self._rehearsal_is_due else ""

    def _suspicions(self, trial: Trial, pulse: Pulse) -> tuple[Sighting, ...]:
        """Return the races that the rehearsal in the first trial found. Later trials return these, too."""
        if not self._is_rehearsed:
            return ()
        key = self._rehearsal_key
        if key not in self._carry:
            before = self._carry.pop(("before", self.case.spec), {})
            case, where = self.as_rehearsed(), self.place.where
            medians_s = {name: (latency.p50_ns or 0) / NS_PER_S for name, latency in trial.latency.items()}
            opening = self.rehearsal_opening()
            assert opening
            self._carry[key] = rehearse(case, where, before, opening, medians_s, pulse)
        suspicions: tuple[Sighting, ...] = self._carry[key]
        return suspicions

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        trial = super().complete(trial, pulse)
        trial = replace(trial, sightings=(*trial.sightings, *self._suspicions(trial, pulse)))
        if self._checking:
            trial = replace(trial, error=trial.error or self._checking.failure or None)
        if self._watches_lock:
            trial = replace(trial, write_lock=_write_lock_of(SharedSlot(self.shared[0]).read()))
        return trial


def _write_lock_of(seen: dict[str, Any] | None) -> WriteLock | None:
    """Return the lock watch's result from its fields, `seen`; None if the watch did not finish."""
    if not seen:
        return None
    holders = tuple(Holder(program, count, Holds(*held)) for program, count, held in seen["holders"])
    return WriteLock(**{**seen, "held": Holds(*seen["held"]), "holders": holders})


def _lines(broken: Sequence[CheckFailure]) -> list[str]:
    return [f"{check.name}: {', '.join(check.examples)}" for check in broken]


# The process that runs the user's checks. The parent process requests each round of checks from it.


STARTING_S = 30.0
"""Time limit in seconds for the start of the process that runs the checks."""
PAUSE_S = 0.1
"""Minimum time between the starts of two rounds of checks, in seconds.

After a long round, a pause as long as the round follows, so that checks take at most half of a processor.
"""


class ChecksTimedOut(CheckNotRun):
    """The process that runs the checks exceeded its time limit and was killed."""


class CheckRunner:
    """Runner of the user's checks on a trial's data, in another process."""

    def __init__(self, case: Case, where: Path) -> None:
        data = case.spec.data
        self._case, self._where = to_namespace(case), where
        self._limit_s = STARTING_S + data.check_timeout_s * len(data.checks)
        self._process = ChildCaller("the process that runs the checks")
        self._started_s: float | None = None
        """Start of the running round by `time.monotonic`; None if no round is running."""
        self._due_s = 0.0
        self._rounds = self._failed = 0
        self._broken: dict[str, CheckFailure] = {}
        self._problem = ""
        """Reason why no further round of checks starts during the load; empty if rounds continue."""
        self.failure = ""
        """Reason why a round of checks ended with an unexpected error or a time-out; empty if none did."""

    def load(self) -> None:
        """Start to import the user's checks in their process. Return before the import has finished."""
        self._process.begin(checks.load, self._case, self._where)

    def before(self, pulse: Pulse) -> list[CheckFailure]:
        """Run the checks before the load and return those that fail. Raises CheckNotRun."""
        pulse = self._with_limit(pulse)
        self._process.result(pulse)
        return self._process.call(pulse, checks.call_checker, Checker.broken, self._case, self._where)

    def after(self, pulse: Pulse) -> list[CheckFailure]:
        """Run all checks, end their process, and return the failed checks. Raises CheckNotRun.

        Call it after all worker processes have ended.
        """
        with self._process as process:
            return process.call(
                self._with_limit(pulse), checks.call_checker, Checker.broken_at_end, self._case, self._where
            )

    def look(self, window: Window, pulse: Pulse) -> None:
        """Start a round of checks if it is due, or record the result of a finished round.

        Call it often during the load. `window` is the measured time.
        """
        if self._started_s is not None and self._process.has_answered():
            self.finish(pulse)
        now_s, is_over = time.monotonic(), time.perf_counter_ns() >= window.closes_ns
        if self._started_s is None and not self._problem and not is_over and now_s >= self._due_s:
            self._started_s = now_s
            look = partial(Checker.round, starts_ns=window.starts_ns)
            self._process.begin(checks.call_checker, look, self._case, self._where)

    def finish(self, pulse: Pulse) -> None:
        """Wait for the running round of checks, if any, and record its result or error."""
        if self._started_s is None:
            return
        started_s, self._started_s = self._started_s, None
        try:
            round_: checks.CheckRound = self._process.result(self._with_limit(pulse))
        except Interrupted:
            raise
        except Exception as error:
            self._problem = str(as_failure(error, self._case.driver)).removesuffix(".")
            if not isinstance(error, CheckNotRun) or isinstance(error, ChecksTimedOut):
                self.failure = f"checks under load stopped: {self._problem}"
            return
        self._due_s = started_s + max(PAUSE_S, 2 * round_.took_s)
        if round_.broken is None:
            return
        self._rounds += 1
        self._failed += bool(round_.broken)
        for broken in round_.broken:
            # Keep the first failure of each check, because it explains the later failures.
            self._broken.setdefault(broken.name, broken)

    def during(self) -> Check:
        """Return the combined result of all rounds of checks during the load."""
        if self._broken:
            lines = tuple(_lines(list(self._broken.values())))
            return Check(UNDER, "failed", self._rounds, self._failed, lines)
        if self._problem:
            return Check(UNDER, "unknown", self._rounds, note=self._problem)
        if not self._rounds:
            return Check(UNDER, "skipped", note="no check finished during the load")
        return Check(UNDER, "ok", self._rounds)

    def end(self) -> None:
        """End the process of the checks."""
        self._process.end()

    def reload(self, pulse: Pulse, change: Callable[[], None]) -> None:
        """Restart the process of the checks. In between, call `change`, which changes the trial's files."""
        self._process.end()
        change()
        self.load()
        self._process.result(self._with_limit(pulse))

    def _with_limit(self, pulse: Pulse) -> Pulse:
        text = f"the checks took longer than {self._limit_s:g} s. Make them faster, or raise --check-timeout."
        return limit_time(pulse, self._limit_s, ChecksTimedOut(text))
