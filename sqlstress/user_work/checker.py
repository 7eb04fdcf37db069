"""The process beside the workers that runs the user's checks while they work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sqlstress.targets.views import BUSY
from sqlstress.user_work.checks import Board, Broken, Checks, Unchecked
from sqlstress.user_work.loading import prepare_process

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.report.case import Case
    from sqlstress.statistics.series import Series
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Reader


PAUSE_S = 0.1
"""The shortest pause between two rounds. It is as long as the round took, if that was longer: the checker
takes half a processor at most."""
_TICK_S = 0.02
_MOST_UNOPENED = 5
"""So often in a row a connection may not be had: whoever closes the last one has the file to itself."""
_BRIEF = 40
"""Characters."""


class Checker:
    """Runs all checks until the workers are done, each round in one read transaction.

    A round has a connection of its own: the last one that is closed checkpoints the WAL and removes it, and
    where one of ours stayed open it would never be one of the load's.
    """

    def __init__(self, case: Case, place: SqlPlace, shared: tuple[Any, ...]) -> None:
        self._board = Board(shared[0])
        self._place, data = place, case.spec.data
        if not all(one.sql for one in data.checks):
            prepare_process(place.directions(), str(case.seed))
        self._checks = Checks(data.checks, data.check_timeout_s)
        self._rounds = self._failed = self._unopened = 0
        self._broken: dict[str, Broken] = {}
        self._problem = ""

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Check again and again. What it finds stands on the board."""
        while not ended() and not self._problem:
            begun = time.monotonic()
            self._round()
            self._report_failures()
            until = time.monotonic() + max(PAUSE_S, time.monotonic() - begun)
            while not ended() and time.monotonic() < until:
                time.sleep(_TICK_S)
        return []

    def _round(self) -> None:
        if not (reader := self._opened()):
            return
        try:
            found = list(self._checks.broken(reader))
            self._rounds += 1
            self._failed += bool(found)
            for one in found:
                # The first counter-example explains the later ones.
                self._broken.setdefault(one.name, one)
        except Unchecked as error:
            self._problem = str(error)
        except Exception as error:
            answer = reader.answer(error)
            if not answer or answer.kind != BUSY:
                raise  # else the next round finds nobody in the way
        finally:
            reader.close()

    def _opened(self) -> Reader | None:
        try:
            reader = self._place.reader()
        except Exception:
            self._unopened += 1
            if self._unopened >= _MOST_UNOPENED:
                raise
            return None
        self._unopened = 0
        return reader

    def _report_failures(self) -> None:
        said = {"rounds": self._rounds, "failed": self._failed, "problem": self._problem}
        # Where there is no room for all of it, what is broken has to be told all the same.
        for broken in fewer(list(self._broken.values())):
            if self._board.write({**said, "broken": broken}):
                break

    def close(self) -> None:
        """Each round has closed what it opened."""


def fewer(broken: list[Broken]) -> Iterator[list[Broken]]:
    """Yield what is broken with all examples, then in ever fewer words."""
    yield broken
    yield [one._replace(examples=tuple(text[:_BRIEF] for text in one.examples[:1])) for one in broken]
    yield [one._replace(name=one.name[:_BRIEF], examples=()) for one in broken[:1]]
