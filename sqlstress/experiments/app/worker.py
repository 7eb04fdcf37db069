"""A worker's half: it imports the user's file, and calls its transactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import FAILED, Chunk, Findings
from sqlstress.errors import EnvironmentFailure, plainly
from sqlstress.experiments.app.errors import Errors
from sqlstress.experiments.app.topics import THREAD
from sqlstress.user_work.source import OwnSource

if TYPE_CHECKING:
    from sqlstress.experiments.app.server_watch import ServerWatch
    from sqlstress.experiments.app.watch import FileWatch
    from sqlstress.report.case import Case
    from sqlstress.targets.directions import Directions
    from sqlstress.targets.dry.store import DryPlace
    from sqlstress.targets.place import SqlPlace


class AppSource(OwnSource):
    """Calls transactions. One that raises has failed, whatever it raises, and the next one is called."""

    def __init__(
        self,
        case: Case,
        place: SqlPlace | DryPlace,
        worker: int,
        salt: int,
        shared: tuple[Any, ...],
    ) -> None:
        transactions = case.spec.transactions
        names = [one.name for one in transactions]
        super().__init__(case, worker, salt, names, [one.weight for one in transactions])
        self._errors = Errors()
        self._folder = Path.cwd()
        self._watch: FileWatch | ServerWatch | None = None
        self.calls: Sequence[Callable[[Any], Any]] = [_nothing] * len(names)
        if place.stores:
            self.calls = self._loaded(names, place.directions(), f"{case.seed}:{salt}:{worker}")

    def _loaded(self, names: Sequence[str], directions: Directions, seed: str) -> list[Callable[[Any], Any]]:
        """Import the user's file and connect; return what each transaction calls."""
        # Here, because the parent reckons the harness's own cost without them.
        from sqlstress.experiments.app.declared import called, declared
        from sqlstress.experiments.app.leftovers import end_forks_with_us
        from sqlstress.experiments.app.server_watch import ServerWatch
        from sqlstress.experiments.app.watch import FileWatch, protect
        from sqlstress.user_work.loading import prepare_process

        spec, address = self.case.spec, directions.address
        self._errors = Errors(directions.hidden)
        end_forks_with_us()
        prepare_process(directions, seed)
        protect(spec.data.database)
        self._watch = ServerWatch(address) if self.case.server else FileWatch(address)
        found = declared(spec.file)
        if list(found.transactions) != list(names):
            raise EnvironmentFailure(f"{spec.file} changed while it was measured: measure again.")
        given: Any = address
        try:
            if found.connect:
                given = called(found.connect, address)()
        except (Exception, SystemExit) as error:
            told = directions.hidden(plainly(error))[:300]
            raise EnvironmentFailure(f"{spec.file}: its connect failed: {told}.") from error
        return [_guarded(called(function, given)) for function in found.transactions.values()]

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        self._errors.add(self.kinds[chunk.kinds[index]], error)
        chunk.kinds[index] = FAILED

    def busy_counts(self) -> tuple[int, int]:
        return self._errors.busy, self._errors.busy_snapshot

    def findings(self) -> Findings:
        # The user's code may have gone elsewhere, and our paths are relative.
        os.chdir(self._folder)
        if self._watch:
            self.seen.sightings = [*self._watch.sightings(), *self._errors.sightings(), *self._lasting()]
            self.seen.effective = self._watch.effective()
        return self.seen

    def _lasting(self) -> list[tuple[str, str, int, str, dict[str, str]]]:
        """Return what is known of threads that would keep this process, as the fields of Sightings."""
        from sqlstress.experiments.app.leftovers import lasting, leave_without_them

        if names := lasting():
            leave_without_them()
        return [(THREAD, name, 1, "", {}) for name in names]

    def close(self) -> None:
        """The user's connections end with this process."""


def _guarded(call: Callable[[], Any]) -> Callable[[Any], Any]:
    from sqlstress.experiments.app.leftovers import is_fork, leave

    def guarded(_: Any) -> None:
        try:
            call()
        finally:
            if is_fork():
                leave()

    return guarded


def _nothing(_: Any) -> None:
    """Stand for a transaction where nothing is stored."""
