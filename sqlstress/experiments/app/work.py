"""The parent's half: the application makes its database, and must have worked on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.experiments.app import apart
from sqlstress.experiments.app.topics import CONNECTION, HERE
from sqlstress.own import database
from sqlstress.own.work import OwnWork
from sqlstress.report import Check

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report.case import Case
    from sqlstress.system.pulse import Pulse
    from sqlstress.targets.place import Place

NAME = "database that was used"


class AppWork(OwnWork):
    """One trial of an application."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self._seed = f"{case.seed}:{salt}:setup"

    def build(self, pulse: Pulse) -> None:
        """Make what the options ask for; without them the application finds nothing, and not even a file."""
        if self.data.setup or self.data.database:
            database.make(self.place, self.data, (), pulse)
        else:
            self.place.discard()

    def ready(self, pulse: Pulse) -> None:
        apart.set_up(self.case.spec.file, self.place.paths[0], self.data.database, self._seed, pulse)

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterable[Check]:
        """Say whether it was this database that the application worked on: else all checks hold idly."""
        told = [one.findings.sightings for one in outcomes if one.findings]
        yield used(
            [traits["database"] for each in told for topic, _, _, _, traits in each if topic == CONNECTION]
        )


def used(databases: Sequence[str]) -> Check:
    """Return whether the connections that were seen were to the database of the trial."""
    if not databases:
        return Check(NAME, "unknown", note="no connection of Python's sqlite3 was seen at work")
    if HERE not in databases:
        return Check(
            NAME, "failed", len(databases), len(databases), (f"the app used {databases[0]} instead",)
        )
    return Check(NAME, "ok", len(databases))
