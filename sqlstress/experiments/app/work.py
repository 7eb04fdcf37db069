"""The parent's half: the application makes its database, and must have worked on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.experiments.app import apart
from sqlstress.experiments.app.topics import CONNECTION, HERE, SESSION
from sqlstress.report import Check
from sqlstress.user_work import database
from sqlstress.user_work.parent import OwnWork

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place

NAME = "database that was used"


class AppWork(OwnWork):
    """One trial of an application."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self._seed = f"{case.seed}:{salt}:setup"
        self._rows_before: int | None = None

    def build(self, pulse: Pulse) -> None:
        """Make what the options ask for; without them the application finds nothing."""
        if self.data.setup or self.data.database:
            database.make(self.place, self.data, (), pulse)
        else:
            self.place.clear()

    def ready(self, pulse: Pulse) -> None:
        apart.set_up(self.place, self._seed, pulse)
        self._rows_before = self.place.rows_written(pulse)

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterable[Check]:
        """Say whether it was this database that the application worked on: else all checks hold idly."""
        told = [one.findings.sightings for one in outcomes if one.findings]
        seen = [
            traits["database"]
            for each in told
            for topic, _, _, _, traits in each
            if topic in (CONNECTION, SESSION)
        ]
        yield used(seen, self._rows(pulse), "psycopg" if self.case.server else "Python's sqlite3")

    def _rows(self, pulse: Pulse) -> int:
        """Return how many rows were written since the load began; 0 where nobody counts them."""
        if self._rows_before is None:
            return 0
        return (self.place.rows_written(pulse) or 0) - self._rows_before


def used(databases: Sequence[str], rows: int, library: str) -> Check:
    """Return whether the application worked on the database of the trial.

    `databases` are those of the connections that were seen, which are the library's; and so many `rows` were
    written there.
    """
    if rows > 0 and databases and HERE not in databases:
        return Check(
            NAME, "unknown", rows, note=f"rows were written, but what was seen at the end used {databases[0]}"
        )
    if rows > 0:
        return Check(NAME, "ok", rows)
    if not databases:
        return Check(NAME, "unknown", note=f"no connection of {library} was seen at work")
    if HERE not in databases:
        return Check(
            NAME, "failed", len(databases), len(databases), (f"the app used {databases[0]} instead",)
        )
    return Check(NAME, "ok", len(databases))
