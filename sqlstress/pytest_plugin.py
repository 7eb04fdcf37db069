"""What pytest finds by itself: the fixture `sqlstress`. A test that fails shows what was measured in it.

pytest imports this in every run of everybody who has the package installed, so it imports nothing else.
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


class Measuring:
    """What the fixture offers: each command that measures, as a method. Databases go to a folder of the test.

    `sqlstress.app("bank.py", concurrency=8, duration=2)`
    """

    def __init__(self, folder: Path, beside: Path) -> None:
        self._folder, self._beside = folder, beside
        self.reports: list[Report] = []
        """What was measured in this test, in its order."""

    def __getattr__(self, command: str) -> Callable[..., Report]:
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
        """Run a command once, by `concurrency` processes for `duration`; a number is seconds.

        `processes` and `seconds` are old names of the two.
        A relative path is that of a file beside the test, or below the current folder. `options` are those of
        the command, with underscores for dashes. Raises what `sqlstress.measure` raises.
        """
        from sqlstress.experiment import commands

        given = {
            "concurrency": concurrency if processes is None else processes,
            "duration": duration if seconds is None else f"{seconds}s",
            "repeat": 1,
            **options,
        }
        if words:
            found = [self._found(word) for word in words]
            (name,) = (one.name for one in commands()[command].options if one.argument)
            given[name] = found if len(found) > 1 else found[0]
        return self.measure(command, **given)

    def hunt(
        self,
        *words: str | Path,
        max_time: float | str = 10,
        seconds: float | None = None,
        **options: Any,
    ) -> Report:
        """Hunt for races in SQLite, or in your work: `sqlstress.hunt("app", "bank.py", max_time=30)`.

        `seconds` is an old name of `max_time`.
        """
        from sqlstress.api import hunt
        from sqlstress.experiment import commands

        what, *files = map(str, words) if words else (None,)
        if what and files:
            (name,) = (one.name for one in commands()[what].options if one.argument)
            found = [self._found(word) for word in files]
            options = {name: found if len(found) > 1 else found[0], **options}
        given = {
            "directory": self._folder,
            "max_time": max_time if seconds is None else f"{seconds}s",
            **options,
        }
        report = hunt(what, **given)
        self.reports.append(report)
        return report

    def _found(self, word: str | Path) -> str:
        beside = self._beside / word
        return str(beside if beside.exists() else word)

    def measure(self, what: str | Path, **options: Any) -> Report:
        """Measure an experiment or a plan, as `sqlstress.measure` does."""
        from sqlstress.api import measure

        report = measure(what, **{"directory": self._folder, **options})
        self.reports.append(report)
        return report


@pytest.fixture(name="sqlstress")
def measuring(request: pytest.FixtureRequest, tmp_path: Path) -> Measuring:
    """Measure concurrency on SQLite: `report = sqlstress.app("bank.py", concurrency=8, duration=2)`."""
    found = Measuring(tmp_path, request.path.parent)
    request.node.stash[_REPORTS] = found.reports
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a test that failed what it measured."""
    outcome = yield
    if outcome.when == "call" and outcome.failed:
        for report in item.stash.get(_REPORTS, []):
            outcome.sections.append(("what sqlstress measured", report.text()))
    return outcome
