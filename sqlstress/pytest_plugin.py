"""Plugin of pytest with the fixture `sqlstress`. Failed tests show their reports.

pytest imports this module in each run, so further modules are imported only when used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sqlstress.api import Report


_REPORTS = pytest.StashKey[list["Report"]]()


class Fixture:
    """Fixture `sqlstress`, with a method for each command: `sqlstress.app("bank.py", duration=2)`."""

    def __init__(self, folder: Path, test_folder: Path) -> None:
        self._folder, self._test_folder = folder, test_folder
        self.reports: list[Report] = []
        """Reports of the test, in the order of measurement."""

    def __getattr__(self, command: str) -> Callable[..., Report]:
        """Return the method for a command. Raises AttributeError for an unknown command."""
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
        """Measure one trial of a command, with positional `words`, and return the report.

        `processes` and `seconds` are old names of `concurrency` and `duration`. Raises SqlstressError.
        """
        arguments = {
            "concurrency": concurrency if processes is None else processes,
            "duration": duration if seconds is None else f"{seconds}s",
            "repeat": 1,
            **options,
            **self._positional(command, words),
        }
        return self.measure(command, **arguments)

    def hunt(
        self, *words: str | Path, max_time: float | str = 10, seconds: float | None = None, **options: Any
    ) -> Report:
        """Hunt for races for `max_time` seconds: `sqlstress.hunt("app", "bank.py", max_time=30)`."""
        from sqlstress.api import hunt

        load, *files = map(str, words) if words else (None,)
        arguments = {
            "directory": self._folder,
            "max_time": max_time if seconds is None else f"{seconds}s",
            **self._positional(load or "", files),
            **options,
        }
        report = hunt(load, **arguments)
        self.reports.append(report)
        return report

    def _positional(self, command: str, words: Sequence[str | Path]) -> dict[str, Any]:
        """Return `words` as the command's positional option, such as {"file": "bank.py"}.

        If a file of this name is in the folder of the test file, its path replaces the word.
        """
        from sqlstress.experiment import commands

        if not words:
            return {}
        found = [str(path if (path := self._test_folder / word).exists() else word) for word in words]
        (name,) = (option.name for option in commands()[command].options if option.argument)
        return {name: found if len(found) > 1 else found[0]}

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
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the reports of a failed test to its output."""
    outcome = yield
    if outcome.when == "call" and outcome.failed:
        for report in item.stash.get(_REPORTS, []):
            outcome.sections.append(("what sqlstress measured", report.text()))
    return outcome
