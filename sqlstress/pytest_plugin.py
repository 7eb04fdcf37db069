"""Plugin of pytest: the fixture `sqlstress`. A failed test shows the reports of its measurements.

pytest imports this module in each run, so the module imports others only when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sqlstress.api import Report


_REPORTS = pytest.StashKey[list["Report"]]()


class Fixture:
    """Value of the fixture `sqlstress`. Each command that measures is a method.

    Example: `sqlstress.app("bank.py", concurrency=8, duration=2)`. Databases are in the test's temporary
    folder.
    """

    def __init__(self, folder: Path, test_folder: Path) -> None:
        self._folder, self._test_folder = folder, test_folder
        self.reports: list[Report] = []
        """Reports of this test, in the order of measurement."""

    def __getattr__(self, command: str) -> Callable[..., Report]:
        """Return the method that runs a command. Raises AttributeError for an unknown command."""
        from sqlstress.experiment import commands
        from sqlstress.options.parsing import suggestion

        if command not in commands():
            raise AttributeError(
                f"sqlstress has no command {command!r}.{suggestion(command, commands())} "
                f"The commands are {', '.join(commands())}."
            )
        return partial(self._measure, command)

    def _measure(
        self,
        command: str,
        *words: str | Path,
        concurrency: int | str = 8,
        duration: float | str = 2,
        processes: int | str | None = None,
        seconds: float | None = None,
        **options: Any,
    ) -> Report:
        """Run a command for a single trial, and return the report.

        `words` are the arguments of the command. A relative path is searched first in the folder of the
        test's file. `processes` and `seconds` are old names of `concurrency` and `duration`. Raises the
        exceptions of `sqlstress.measure`.
        """
        from sqlstress.experiment import commands

        arguments = {
            "concurrency": concurrency if processes is None else processes,
            "duration": duration if seconds is None else f"{seconds}s",
            "repeat": 1,
            **options,
        }
        if words:
            paths = [self._find(word) for word in words]
            (name,) = (option.name for option in commands()[command].options if option.argument)
            arguments[name] = paths if len(paths) > 1 else paths[0]
        return self.measure(command, **arguments)

    def hunt(
        self,
        *words: str | Path,
        max_time: float | str = 10,
        seconds: float | None = None,
        **options: Any,
    ) -> Report:
        """Hunt for races in SQLite or in your work: `sqlstress.hunt("app", "bank.py", max_time=30)`.

        `max_time` is a number of seconds or a text with a unit, and `seconds` is its old name.
        """
        from sqlstress.api import hunt
        from sqlstress.experiment import commands

        load, *files = map(str, words) if words else (None,)
        if load and files:
            (name,) = (option.name for option in commands()[load].options if option.argument)
            paths = [self._find(word) for word in files]
            options = {name: paths if len(paths) > 1 else paths[0], **options}
        arguments = {
            "directory": self._folder,
            "max_time": max_time if seconds is None else f"{seconds}s",
            **options,
        }
        report = hunt(load, **arguments)
        self.reports.append(report)
        return report

    def _find(self, path: str | Path) -> str:
        """Return the path of a file in the folder of the test's file; the path itself if it is not there."""
        in_folder = self._test_folder / path
        return str(in_folder if in_folder.exists() else path)

    def measure(self, what: str | Path, **options: Any) -> Report:
        """Measure an experiment or a plan, as `sqlstress.measure` does, and return the report."""
        from sqlstress.api import measure

        report = measure(what, **{"directory": self._folder, **options})
        self.reports.append(report)
        return report


@pytest.fixture(name="sqlstress")
def measuring(request: pytest.FixtureRequest, tmp_path: Path) -> Fixture:
    """Measure concurrency on SQLite: `report = sqlstress.app("bank.py", concurrency=8, duration=2)`."""
    measuring_object = Fixture(tmp_path, request.path.parent)
    request.node.stash[_REPORTS] = measuring_object.reports
    return measuring_object


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the reports of a failed test's measurements to the output of the test."""
    outcome = yield
    if outcome.when == "call" and outcome.failed:
        for report in item.stash.get(_REPORTS, []):
            outcome.sections.append(("what sqlstress measured", report.text()))
    return outcome
