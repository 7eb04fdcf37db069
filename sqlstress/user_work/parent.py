"""The parent's half: the database of a trial, and the user's checks before, during and after the load."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.pool import plain
from sqlstress.engine.proofs import ProvenWork, examined
from sqlstress.errors import SqlstressError
from sqlstress.report import Check
from sqlstress.report.results import Holder, Holds, WriteLock
from sqlstress.system.processes import call_apart
from sqlstress.targets import open_place, run_watched
from sqlstress.user_work import AFTER, UNDER, checks, database, notes
from sqlstress.user_work.checks import Broken, Checks, Unchecked
from sqlstress.user_work.loading import prepare_process
from sqlstress.user_work.rehearsal import content, rehearsed

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report import Trial
    from sqlstress.report.case import Case
    from sqlstress.report.results import Sighting
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place, SqlPlace
    from sqlstress.targets.views import Reader


CHECKER, LOCK_WATCH = "checker", "lock watch"


class BrokenBefore(SqlstressError):
    """A check fails before anybody has worked."""

    exit_code = 1


class UserWork(ProvenWork):
    """One trial. An experiment inherits from it, and adds what it makes and proves beside."""

    place: SqlPlace
    opening = ""
    """The import string of a `rehearsal.Opening`; empty: its transactions can't be rehearsed."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self._carry = carry
        self.data = case.spec.data
        self._is_checked = bool(self.data.checks) and place.stores and case.verify != "none"
        is_watched = self._is_checked and not all(one.at_end for one in self.data.checks)
        self.companions: tuple[str, ...] = (CHECKER,) if is_watched else ()
        self._board = checks.shared_words()
        self.shared: tuple[Any, ...] = (self._board,)
        """First the checker's board, then that of the lock watch; a workload adds its own behind."""
        if self._looks_on:
            self.companions += (LOCK_WATCH,)
            self.shared += (checks.shared_words(),)

    @property
    def _looks_on(self) -> bool:
        """Whether somebody looks from outside who holds the write lock."""
        return getattr(self.case.spec, "where", False) and self.place.stores

    @property
    def _is_rehearsed(self) -> bool:
        return bool(self.opening) and self.place.stores

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
        self.ready(pulse)
        if self._is_checked and (broken := _broken_checks(self.place, pulse)):
            raise BrokenBefore(
                f"before any load, {'; '.join(_lines(broken))}. Nothing was measured. Fix the setup or "
                "the check."
            )
        if self._is_rehearsed and ("rehearsed", self.case.spec) not in self._carry:
            self._carry["before", self.case.spec] = content(self.place.where)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        sound = self.sound(pulse)
        yield from sound
        yield from self.proofs(outcomes, pulse)
        if CHECKER in self.companions:
            yield _during(checks.Board(self._board).read())
        if self._is_checked:
            try:
                yield examined(AFTER, lambda: self._after(outcomes, pulse))
            except checks.Unchecked as error:
                if all(check.status != "failed" for check in sound):
                    raise
                # In a damaged database a check may not run, and that it is damaged is the verdict.
                yield Check(AFTER, "unknown", note=str(error).removesuffix("."))

    def discard(self) -> None:
        super().discard()
        notes.end(self.place.where)

    def _after(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        broken = _broken_checks(self.place, pulse, at_end=True)
        late = {one.name for one in self.data.checks if one.at_end}
        if broken and late.issuperset(one.name for one in broken) and any(one.died for one in outcomes):
            why = f"a process ended early, so notes may be missing; {'; '.join(_lines(broken))}"
            return Check(AFTER, "unknown", len(self.data.checks), note=why)
        status = "failed" if broken else "ok"
        return Check(AFTER, status, len(self.data.checks), len(broken), tuple(_lines(broken)))

    def as_rehearsed(self) -> Case:
        """Return the case with what of it is rehearsed."""
        return self.case

    def _suspicions(self, pulse: Pulse) -> tuple[Sighting, ...]:
        """Return what is suspicious in the user's statements: rehearsed once, and told of each trial."""
        if not self._is_rehearsed:
            return ()
        key = "rehearsed", self.case.spec
        if key not in self._carry:
            before = self._carry.pop(("before", self.case.spec), {})
            case, where = self.as_rehearsed(), self.place.where
            self._carry[key] = rehearsed(case, where, before, self.opening, pulse)
        found: tuple[Sighting, ...] = self._carry[key]
        return found

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        trial = replace(trial, sightings=(*trial.sightings, *self._suspicions(pulse)))
        if self._looks_on:
            trial = replace(trial, write_lock=_write_lock(checks.Board(self.shared[1]).read()))
        return trial


def _during(seen: dict[str, Any] | None) -> Check:
    """Return what the checker saw beside the load."""
    if not seen:
        return Check(UNDER, "unknown", note="the checker did not report")
    if seen["broken"]:
        return Check(UNDER, "failed", seen["rounds"], seen["failed"], tuple(_lines(seen["broken"])))
    if seen["problem"]:
        return Check(UNDER, "unknown", seen["rounds"], note=seen["problem"].removesuffix("."))
    if not seen["rounds"]:
        return Check(UNDER, "skipped", note="no check finished during the load")
    return Check(UNDER, "ok", seen["rounds"])


def _write_lock(seen: dict[str, Any] | None) -> WriteLock | None:
    """Return what the lock watch saw; None where it came to no end."""
    if not seen:
        return None
    holders = tuple(Holder(program, count, Holds(*held)) for program, count, held in seen["holders"])
    return WriteLock(**{**seen, "held": Holds(*seen["held"]), "holders": holders})


def _lines(broken: Sequence[Broken]) -> list[str]:
    return [f"{one.name}: {', '.join(one.examples)}" for one in broken]


# The parent's look at the checks, before the load and after it.


STARTING_S = 30.0
"""How long a process may take until it runs the first check."""


def _broken_checks(place: SqlPlace, pulse: Pulse, *, at_end: bool = False) -> list[Broken]:
    """Return the checks that fail now. Raises Unchecked for one that can't be run, or takes too long.

    `at_end`: with those that wait until all processes have ended.
    """
    data = place.case.spec.data
    if all(one.sql for one in data.checks):
        with place.reading(pulse) as reader:
            return run_watched(reader, lambda: _broken(place.case, reader), pulse)
    # A function of the user's may do anything: it gets a process that can be ended.
    limit_s = STARTING_S + data.check_timeout_s * len(data.checks)
    until = time.monotonic() + limit_s

    def hurried() -> None:
        pulse()
        if time.monotonic() > until:
            raise Unchecked(
                f"the checks took longer than {limit_s:g} s. Make them faster, or raise --check-timeout."
            )

    return call_apart(hurried, broken_apart, plain(place.case), place.where, at_end)


def broken_apart(case: Case, where: Path, at_end: bool) -> list[Broken]:
    """Do the same in a process of its own: whoever waits ends it."""
    place: SqlPlace = open_place(case, where)  # type: ignore[assignment]
    directions = place.directions()
    prepare_process(directions, str(case.seed))
    notes.remember_in(where)
    with place.reading(lambda: None) as reader:
        found = _broken(case, reader)
        late = [one for one in case.spec.data.checks if one.at_end]
        if at_end and late:
            data = case.spec.data
            known = Checks(late, data.check_timeout_s)  # loads the user's file, whose classes notes may have
            noted = notes.read(where, case.concurrency)
            given = {checks.NOTES: noted, checks.DATABASE: directions.address}
            found += known.broken_at_end(reader, given)
        return found


def _broken(case: Case, reader: Reader) -> list[Broken]:
    data = case.spec.data
    return list(Checks(data.checks, data.check_timeout_s).broken(reader))
