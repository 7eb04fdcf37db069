"""Whether somebody else had a hand in a trial's databases, so that its figures are not those of its case.

What a stranger writes into a table is for the proof to find. Here is what the proof can't see: a database
that went on without its file, one that is locked so that nobody could work, another journal mode, an
index or a trigger more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlstress.engine.pool import Ended
from sqlstress.errors import EnvironmentFailure
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.system.pulse import Pulse
from sqlstress.targets import DRY
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import codes, explain, load_driver
from sqlstress.targets.sqlite.drivers.settings import differences
from sqlstress.targets.sqlite.seal import Seal

MARKS = ("journal_mode", "schema_version", "user_version", "application_id")
"""What a database says of itself, and no worker changes. Every change of a table, an index or a trigger
raises the schema's version, and so does VACUUM."""
PATIENCE_MS = 1000
"""A lock that is still taken then, when no process of ours is connected any more, is a stranger's."""
MEANWHILE = "while it was measured"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What somebody else did."""

    text: str
    """A sentence without its full stop."""
    unread: str | None = None
    """What a check says that has nothing to read; None where the proof can be made all the same."""

    def verdict(self) -> Verdict:
        """Return the verdict where there is nothing to read."""
        assert self.unread
        if self.unread == "failed":
            return Verdict((Check("database files", "failed", 0, 1, (self.text,)),))
        return Verdict((Check("database files", self.unread, note=self.text),))


class Guard:
    """The databases of a trial as they were when they had been prepared; the dry driver has none."""

    def __init__(self, case: Case, folder: Path, pulse: Pulse) -> None:
        self._case, self._pulse = case, pulse
        self._paths = files.paths(case, folder) if case.driver != DRY else []
        self._seal = Seal(self._paths)
        self._marks = [self._first_marks(path) for path in self._paths]

    def disturbance(self, ended: Sequence[Ended]) -> Disturbance | None:
        """Say what somebody else did by now; None when nothing is to be seen of it.

        No process of ours may be connected any more.
        """
        if broken := self._seal.broken():
            return Disturbance(f"{broken} {MEANWHILE}", "failed")
        told = [one.done.findings for one in ended if one.done]
        broken = next((findings.broken_seal for findings in told if findings.broken_seal), None)
        if broken:
            return Disturbance(f"{broken} {MEANWHILE}")
        for path, before in zip(self._paths, self._marks, strict=True):
            if found := self._changed(path, before):
                return found
        for findings in told:
            for name, asked, answer in differences(self._case.settings, findings.effective):
                return Disturbance(f"{name} was {asked} and became {answer} {MEANWHILE}")
        return None

    def _first_marks(self, path: Path) -> dict[str, str]:
        self._pulse()
        try:
            return self._read_marks(path)
        except Exception as error:
            raise EnvironmentFailure(f"{path.name} can't be read: {self._explain(error)}.") from error

    def _changed(self, path: Path, before: dict[str, str]) -> Disturbance | None:
        self._pulse()
        try:
            now = self._read_marks(path)
        except Exception as error:
            code = load_driver(self._case.driver).result_code(error)
            if codes.is_busy(code):
                return Disturbance(
                    f"{path.name} is locked by another program: end it and measure again", "unknown"
                )
            if codes.is_damage(code):
                return Disturbance(f"{path.name} can't be read: {self._explain(error)}")
            raise  # what this machine lacks is nobody's hand
        for name, mark in now.items():
            if mark != before[name]:
                was = f"its {name} was {before[name]} and is {mark}"
                return Disturbance(f"another program changed {path.name} {MEANWHILE}: {was}")
        return None

    def _read_marks(self, path: Path) -> dict[str, str]:
        """Return the marks of a database in which nobody is writing."""
        driver = load_driver(self._case.driver)
        with closing(driver.connect(path, PATIENCE_MS, None)) as connection:
            connection.rows("BEGIN IMMEDIATE")
            marks = {name: str(connection.rows(f"PRAGMA {name}")[0][0]) for name in MARKS}
            connection.rows("ROLLBACK")
            return marks

    def _explain(self, error: Exception) -> str:
        return explain(self._case.driver, error)
