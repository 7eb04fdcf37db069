"""Context of every study: options, a folder for databases, the loops, and the tool as users run it."""

from __future__ import annotations

import compileall
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.document import CHECKOUT
from benchmarks.loops import Cell, Crew, Sample, database
from sqlstress.report import Environment, Report, Run, Trial, from_json

LOADS = {"get-only": 1.0, "50/50": 0.5, "replace-only": 0.0}
DRIVERS = ("apsw", "sqlite3")
Watching = Callable[[int], AbstractContextManager[None]]
"""Function that watches the process with this id while the context is open."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line. The study decides those left empty, and uses only some of them."""

    repeats: int = 1
    duration_s: float = 1.0
    warmup_s: float = 0.3
    seed: int = 1
    drivers: tuple[str, ...] = DRIVERS
    loads: tuple[str, ...] = ()
    synchronous: tuple[str, ...] = ()
    concurrency: tuple[int, ...] = ()
    arms: tuple[str, ...] = ()


class ToolFailure(Exception):
    """The command failed, or its measurement is not valid."""


@dataclass(frozen=True, slots=True)
class ToolCase:
    """The options of `sqlstress kv` that the benchmarks vary."""

    driver: str
    concurrency: int = 1
    read_ratio: float = 0.5
    synchronous: str = "full"
    verify: str = "quick"
    duration_s: float = 1.0
    warmup_s: float = 0.3
    loop: str | None = None
    """None leaves the choice to the tool."""

    def options(self, seed: int) -> dict[str, str]:
        """Return the options by name."""
        values: dict[str, object] = {
            "driver": self.driver,
            "concurrency": self.concurrency,
            "buckets": 1,
            "read-ratio": self.read_ratio,
            "synchronous": self.synchronous,
            "verify": self.verify,
            "duration": f"{self.duration_s}s",
            "warmup": f"{self.warmup_s}s",
            "repeat": 1,
            "seed": seed,
            **({"loop": self.loop} if self.loop else {}),
        }
        return {name: str(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one run of the command."""

    trial: Trial
    wall_s: float
    """Time from the start of the command to its end, in seconds."""
    report_bytes: int
    """Size of the saved report."""


class Tool:
    """Runner of `sqlstress kv` with its databases below a folder; keeps the environment of the reports."""

    def __init__(self, folder: Path) -> None:
        # An installed package has its bytecode; a checkout may be forbidden to write any
        # (PYTHONDONTWRITEBYTECODE), and each of its processes would compile it again.
        compileall.compile_dir(CHECKOUT / "sqlstress", quiet=2)
        self._folder = folder
        self._environment: Environment | None = None

    def kv(self, options: dict[str, str], watching: Watching | None = None) -> Outcome:
        """Run the command with one case, watched on request. Raises ToolFailure."""
        with TemporaryDirectory(dir=self._folder, prefix="tool-") as own:
            file = Path(own) / "report.json"
            given = [f"--{name}={value}" for name, value in options.items()]
            fixed = ["--dir", own, "--quiet", "--no-progress", "-o", f"json:{file}"]
            begun = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", "sqlstress", "kv", *given, *fixed],
                cwd=CHECKOUT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            with process, watching(process.pid) if watching else nullcontext():
                said = process.communicate()
            wall_s = time.perf_counter() - begun
            if process.returncode:
                words = next((text for text in reversed(said) if text.strip()), "it said nothing")
                raise ToolFailure(f"sqlstress ended with exit code {process.returncode}: {words.strip()}")
            report_bytes = file.stat().st_size
            report = from_json(file.read_text(encoding="utf-8"))
        self._remember(report)
        return Outcome(_valid_trial(report.runs[0]), wall_s, report_bytes)

    def measure(self, case: ToolCase, seed: int) -> Outcome:
        """Measure one case. Raises ToolFailure."""
        return self.kv(case.options(seed))

    def fingerprint(self, drivers: tuple[str, ...]) -> Environment:
        """Return the environment of the reports, with the builds of all these drivers."""
        for driver in drivers:
            self.measure(ToolCase(driver, duration_s=0.1, warmup_s=0.0), 0)
        if self._environment is None:
            raise ToolFailure("no report was seen, so there is no fingerprint")
        return self._environment

    def _remember(self, report: Report) -> None:
        seen = self._environment.builds if self._environment else ()
        builds = {build.driver: build for build in (*seen, *report.environment.builds)}
        self._environment = replace(report.environment, builds=tuple(builds.values()))


def _valid_trial(run: Run) -> Trial:
    trial = run.typical()
    if error := run.error or (trial and trial.error):
        raise ToolFailure(error)
    if trial is None:
        raise ToolFailure("the report holds no trial")
    if run.verdict.status == "failed":
        raise ToolFailure(f"the proof failed: {run.verdict.counterexamples[:1]}")
    return trial


@dataclass(frozen=True, slots=True)
class Bench:
    """Context of a study, which measures one arm at a time."""

    options: Options
    folder: Path
    tool: Tool

    def seed(self, index: int) -> int:
        """Return the seed of a round, shared by its arms; the workers use the seeds above it."""
        return self.options.seed + index * 10_000

    def loops(self, command: list[str], cell: Cell, index: int) -> Sample:
        """Measure worker processes of a loop in a round, on a fresh database. Raises LoopFailure."""
        with (
            database(self.folder, cell.key_space) as path,
            Crew(command, cell, path, self.seed(index)) as crew,
        ):
            return crew.sample()

    def cell(self, load: str, synchronous: str, concurrency: int) -> Cell:
        """Return a cell for `loops`, with the window of the options."""
        options = self.options
        return Cell(LOADS[load], synchronous, concurrency, options.duration_s, options.warmup_s)

    def case(self, driver: str, cell: Cell) -> ToolCase:
        """Return the case of the tool that does the work of a cell."""
        return ToolCase(
            driver,
            cell.concurrency,
            cell.read_ratio,
            cell.synchronous,
            duration_s=cell.duration_s,
            warmup_s=cell.warmup_s,
        )
