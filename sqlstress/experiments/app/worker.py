"""A worker's half: it imports the user's file, and calls its transactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import FAILED, Chunk, Findings, Stamps
from sqlstress.errors import EnvironmentFailure, plainly
from sqlstress.experiments.app import THREAD
from sqlstress.experiments.app.errors import Errors, Unraised
from sqlstress.user_work.source import UserSource

if TYPE_CHECKING:
    from sqlstress.experiments.app.watch import FileWatch, ServerWatch
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Directions
    from sqlstress.user_work.notes import Notebook
    from sqlstress.user_work.rehearsal import Calls
    from sqlstress.user_work.tracing import Tracer


class AppSource(UserSource):
    """Calls transactions. One that raises has failed, whatever it raises, and the next one is called."""

    _unraised: Unraised
    _notes: Notebook | None = None
    _finish: Callable[[], Any] | None = None

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(case, worker, salt, {one.name: one.weight for one in case.spec.transactions})
        self._errors = Errors()
        self._folder = Path.cwd()
        self._watch: FileWatch | ServerWatch | None = None
        # Where nothing is stored they do nothing.
        self.calls: Sequence[Callable[[Any], Any]] = [lambda _: None] * len(self.kinds)
        if place.stores:
            self.calls = self._loaded(place.directions(), place.where, f"{case.seed}:{salt}:{worker}")

    def _loaded(self, directions: Directions, where: Path, seed: str) -> list[Callable[[Any], Any]]:
        """Import the user's file and connect; return what each transaction calls."""
        # Here, because the parent reckons the harness's own cost without them.
        from sqlstress.experiments.app.user_file import called, declared, prepare
        from sqlstress.experiments.app.watch import FileWatch, ServerWatch
        from sqlstress.user_work.notes import take

        spec, address = self.case.spec, directions.address
        self._errors, self._unraised = Errors(directions.hidden), Unraised(directions.hidden)
        prepare(directions, spec.data.database, seed)
        self._watch = ServerWatch(address) if self.case.server else FileWatch(address)
        found = declared(spec.file)
        if tuple(found.transactions) != self.kinds:
            raise EnvironmentFailure(f"{spec.file} changed during the measurement. Measure again.")
        self._unraised.watch()
        self._notes = take(where, self.worker, self.case.concurrency)
        given: Any = address
        try:
            if found.connect:
                given = called(found.connect, address)()
        except (Exception, SystemExit) as error:
            problem = directions.hidden(plainly(error))[:300]
            raise EnvironmentFailure(f"{spec.file}: connect failed: {problem}.") from error
        self._finish = called(found.finish, given) if found.finish else None
        return [_guarded(called(function, given)) for function in found.transactions.values()]

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        self._errors.add(self.kinds[chunk.kinds[index]], error)
        chunk.kinds[index] = FAILED

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """End the worker when a note was not taken: the checks would miss it."""
        if self._notes:
            self._notes.check()

    def busy_counts(self) -> tuple[int, int]:
        return self._errors.busy, self._errors.busy_snapshot

    def findings(self) -> Findings:
        if self._finish:
            try:
                self._finish()
            except (Exception, SystemExit) as error:
                self._errors.add("finish", error)
        if self._notes:
            self._notes.check()
        # The user's code may have gone elsewhere, and our paths are relative.
        os.chdir(self._folder)
        if self._watch:
            from sqlstress.experiments.app.user_file import lasting

            self.seen.sightings = [
                *self._watch.sightings(),
                *self._errors.sightings(),
                *self._unraised.sightings(),
                *((THREAD, name, 1, "", {}) for name in lasting()),
            ]
            self.seen.effective = self._watch.effective()
        return self.seen


def _guarded(call: Callable[[], Any]) -> Callable[[Any], Any]:
    from sqlstress.experiments.app.user_file import leave_if_forked

    def guarded(_: Any) -> None:
        try:
            call()
        finally:
            leave_if_forked()

    return guarded


# A rehearsal: the transactions are called on a copy, and their statements are traced.


def open_calls(case: Case, place: SqlPlace, tracer: Tracer) -> Calls:
    """Import the user's file and connect; return what calls each transaction."""
    from sqlstress.experiments.app.user_file import called, declared, prepare

    spec, directions = case.spec, place.directions()
    tracer.tells_lines_of(Path(spec.file).parent)
    prepare(directions, spec.data.database, f"{case.seed}:rehearsal")
    found = declared(spec.file)
    given = called(found.connect, directions.address)() if found.connect else directions.address
    return {name: called(function, given) for name, function in found.transactions.items()}
