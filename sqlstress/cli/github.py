"""--github: the step's summary, and annotations."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlstress.cli.console import Tell, say
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.report import Report

VARIABLE = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a job on GitHub Actions."""

    summary: Path
    """The file to which its summary is appended."""

    tell: Tell = say
    """Prints an annotation: GitHub reads them from either stream."""

    @classmethod
    def here(cls, tell: Tell = say) -> Step:
        """Return the step that this process is part of. Raises UsageError outside of one."""
        name = os.environ.get(VARIABLE)
        if not name:
            raise UsageError(f"--github works in GitHub Actions only: {VARIABLE} is not set. Leave it out.")
        return cls(Path(name), tell)

    def save(self, *reports: Report) -> None:
        """Show reports. Raises EnvironmentFailure."""
        from sqlstress.render.ci.github import summary, workflow_commands

        self.show(workflow_commands(*reports), summary(*reports))

    def show(self, annotations: Iterable[str], summary: str) -> None:
        """Print the annotations, and append to the summary. Raises EnvironmentFailure."""
        for line in annotations:
            self.tell(line)
        try:
            with self.summary.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                file.write(f"{summary}\n")
        except OSError as error:
            raise EnvironmentFailure(f"cannot write {VARIABLE}: {error.strerror}.") from error
