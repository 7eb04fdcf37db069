"""The parent's half: the database of a trial, and the user's checks before, during and after the load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlstress.engine.examine import examined
from sqlstress.engine.proven import ProvenWork
from sqlstress.errors import SqlstressError
from sqlstress.experiment import face_of
from sqlstress.own import board, database, look
from sqlstress.own.checking import Broken
from sqlstress.report import Check
from sqlstress.statistics.units import format_duration

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report import Trial
    from sqlstress.report.case import Case
    from sqlstress.system.pulse import Pulse
    from sqlstress.targets.place import Place, SqlPlace

CHECKER = "checker"
UNDER, AFTER = "checks under load", "checks after the load"


class BrokenBefore(SqlstressError):
    """A check fails before anybody has worked."""

    exit_code = 1


class OwnWork(ProvenWork):
    """One trial. An experiment inherits from it, and adds what it makes and proves beside."""

    place: SqlPlace

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.data = case.spec.data
        self._is_checked = bool(self.data.checks) and place.stores and case.verify != "none"
        self.companions = (CHECKER,) if self._is_checked else ()
        self._board = board.shared_words()
        self.shared: tuple[Any, ...] = (self._board,)
        """The checker's board comes first; a workload adds its own behind it."""

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
        self.build(pulse)
        self.ready(pulse)
        if self._is_checked and (found := look.broken(self.place, pulse)):
            raise BrokenBefore(
                f"before any load, {'; '.join(look.told(found))}. Nothing was measured: mend the setup, or "
                "the check."
            )

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        yield from self.sound(pulse)
        yield from self.proofs(outcomes, pulse)
        if self._is_checked:
            yield during(board.Board(self._board).read())
            yield examined(AFTER, lambda: self._after(pulse))

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        # At a rate what was not done stands in the table as queued.
        if trial.error or trial.transactions or trial.failed or trial.arrived:
            return trial
        unit, window = face_of(self.case).unit, format_duration(self.case.duration_s)
        why = f"no {unit} ended within the window of {window}: give a longer --duration, or --ops"
        return replace(trial, error=why)

    def _after(self, pulse: Pulse) -> Check:
        broken = look.broken(self.place, pulse)
        status = "failed" if broken else "ok"
        return Check(AFTER, status, len(self.data.checks), len(broken), tuple(look.told(broken)))


def during(seen: dict[str, Any] | None) -> Check:
    """Return what the checker saw beside the load."""
    if not seen:
        return Check(UNDER, "unknown", note="the checker said nothing")
    broken = [Broken(one[0], one[1], tuple(one[2])) for one in seen["broken"]]
    if broken:
        return Check(UNDER, "failed", seen["rounds"], seen["failed"], tuple(look.told(broken)))
    if seen["problem"]:
        return Check(UNDER, "unknown", seen["rounds"], note=seen["problem"].removesuffix("."))
    if not seen["rounds"]:
        return Check(UNDER, "skipped", note="no check came to its end while the others worked")
    return Check(UNDER, "ok", seen["rounds"])
