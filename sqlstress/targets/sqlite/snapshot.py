"""The databases of a trial as they were when they had been prepared, and what was done to them since.

What a stranger writes into a table is for the proof to find. Here is what the proof can't see: a database
that went on without its file, one that is locked so that nobody could work, another journal mode, an
index or a trigger more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.system.pulse import Pulse
from sqlstress.targets.place import MEANWHILE, Disturbance
from sqlstress.targets.seal import Seal
from sqlstress.targets.sqlite.drivers import codes, explain, load_driver

MARKS = ("journal_mode", "schema_version", "user_version", "application_id")
"""What a database says of itself, and no worker changes. Every change of a table, an index or a trigger
raises the schema's version, and so does VACUUM."""
PATIENCE_MS = 1000
"""A lock that is still taken then, when no process of ours is connected any more, is a stranger's."""


class SqliteSnapshot:
    """The files, and what each said of itself."""

    def __init__(self, case: Case, paths: Sequence[Path], pulse: Pulse) -> None:
        self._driver, self._strangers = case.driver, face_of(case).strangers
        self._seal = Seal(paths)
        self._marks = [(path, self._first_marks(path, pulse)) for path in paths]

    def exchanged(self) -> str | None:
        return self._seal.exchanged()

    def changed(self, pulse: Pulse) -> Disturbance | None:
        for path, before in self._marks:
            pulse()
            if found := self._changed(path, before):
                return found
        return None

    def _first_marks(self, path: Path, pulse: Pulse) -> dict[str, str]:
        pulse()
        try:
            return self._read_marks(path)
        except Exception as error:
            raise EnvironmentFailure(f"{path.name} can't be read: {explain(self._driver, error)}.") from error

    def _changed(self, path: Path, before: dict[str, str]) -> Disturbance | None:
        try:
            now = self._read_marks(path)
        except Exception as error:
            code = load_driver(self._driver).result_code(error)
            if codes.is_busy(code):
                return Disturbance(
                    f"{path.name} is locked by another program: end it and measure again", "unknown"
                )
            if codes.is_damage(code):
                return Disturbance(f"{path.name} can't be read: {explain(self._driver, error)}")
            raise  # what this machine lacks is nobody's hand
        for name, mark in now.items():
            if mark != before[name]:
                was = f"its {name} was {before[name]} and is {mark}"
                return Disturbance(f"{self._strangers} changed {path.name} {MEANWHILE}: {was}")
        return None

    def _read_marks(self, path: Path) -> dict[str, str]:
        """Return the marks of a database in which nobody is writing."""
        with closing(load_driver(self._driver).connect(path, PATIENCE_MS, None)) as connection:
            connection.rows("BEGIN IMMEDIATE")
            marks = {name: str(connection.rows(f"PRAGMA {name}")[0][0]) for name in MARKS}
            connection.rows("ROLLBACK")
            return marks
