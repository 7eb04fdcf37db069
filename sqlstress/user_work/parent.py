"""Parent process's part of a trial with the user's own work: creates the database, starts the checks.

A separate process runs the user's checks before, during and after the load. During the load, the checks run
in rounds: a round runs each check once, except for checks that run only at the end. After the load, a
rehearsal calls the user's transactions again and searches for possible races. If a check has failed, or if a
race is suspected, a search calls them in many orders, to find the step after which a check fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.omissions import REHEARSAL, is_omitted
from sqlstress.engine.proofs import ProvenWork, examined
from sqlstress.errors import SqlstressError
from sqlstress.races.suspicions import LOST_DATA
from sqlstress.report import Check
from sqlstress.report.results import Holder, Holds, WriteLock
from sqlstress.statistics.units import NS_PER_S
from sqlstress.user_work import AFTER, UNDER, database, notes
from sqlstress.user_work.check_runner import CheckRunner, lines_of
from sqlstress.user_work.checks import CheckFailure, CheckNotRun
from sqlstress.user_work.interleavings import SearchResult, search_interleavings, with_orders
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
                f"before any load, {'; '.join(lines_of(broken))}. Nothing was measured. Fix the setup or "
                "the check."
            )
        if self._rehearsal_is_due:
            self._carry[self._files_key] = content(self.files_before)

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
            why = f"a process ended early, so notes may be missing; {'; '.join(lines_of(broken))}"
            return Check(AFTER, "unknown", len(self.data.checks), note=why)
        status = "failed" if broken else "ok"
        return Check(AFTER, status, len(self.data.checks), len(broken), tuple(lines_of(broken)))

    def as_rehearsed(self) -> Case:
        """Return the case that the rehearsal runs. Subclasses may change its options for this purpose."""
        return self.case

    @property
    def _rehearsal_key(self) -> tuple[str, object]:
        return "rehearsed", self.case.spec

    @property
    def _files_key(self) -> tuple[str, object]:
        return "files before the load", self.case.spec

    @property
    def completing(self) -> str:
        return "rehearsing" if self._rehearsal_is_due else ""

    def _suspicions(self, trial: Trial, pulse: Pulse) -> tuple[Sighting, ...]:
        """Return the races that the rehearsal in the first trial found. Later trials return these, too."""
        if not self._is_rehearsed:
            return ()
        key = self._rehearsal_key
        if key not in self._carry:
            before = self._carry.get(self._files_key, {})
            case, where = self.as_rehearsed(), self.place.where
            medians_s = {name: (latency.p50_ns or 0) / NS_PER_S for name, latency in trial.latency.items()}
            opening = self.rehearsal_opening()
            assert opening
            self._carry[key] = rehearse(case, where, before, opening, medians_s, pulse)
        suspicions: tuple[Sighting, ...] = self._carry[key]
        return suspicions

    def _with_tried_orders(self, trial: Trial, pulse: Pulse) -> Trial:
        """Search for the step after which a check fails, if a check failed, or if a race is suspected.

        Return the trial with an observation of the step. If the search finds none and no check failed under
        load, the suspicions in the trial get the number of orders of calls that the search tried.
        """
        failed = any(
            check.status == "failed" and check.name in (UNDER, AFTER) for check in trial.verdict.checks
        )
        suspected = any(sighting.what in LOST_DATA for sighting in trial.sightings)
        opening, key = self.rehearsal_opening(), ("orders", self.case.spec, failed)
        is_due = failed or (suspected and self._checking and self._checks_under_load)
        if not (is_due and opening and self._is_rehearsed):
            return trial
        if key not in self._carry:
            files = self._carry.get(self._files_key, {})
            self._carry[key] = search_interleavings(
                self.as_rehearsed(), files, self.place.where, opening, pulse
            )
        result: SearchResult = self._carry[key]
        if result.found:
            return replace(trial, sightings=(*trial.sightings, result.found))
        if failed:
            return trial
        return replace(trial, sightings=with_orders(trial.sightings, self.data.checks, result))

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        trial = super().complete(trial, pulse)
        trial = replace(trial, sightings=(*trial.sightings, *self._suspicions(trial, pulse)))
        trial = self._with_tried_orders(trial, pulse)
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
