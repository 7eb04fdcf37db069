"""Run the command line of this checkout as its users do, and read the report that it saves."""

from __future__ import annotations

import compileall
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.loops import CHECKOUT, Sample
from benchmarks.watch import Watcher
from sqlstress.report import Environment, Report, Run, Trial, from_json


class ToolFailure(Exception):
    """The command failed, or what it measured is not valid."""


@dataclass(frozen=True, slots=True)
class ToolCase:
    """The options of `sqlstress kv` that the benchmarks vary."""

    driver: str
    concurrency: int = 1
    read_ratio: float = 0.5
    synchronous: str = "full"
    busy: str = "default"
    verify: str = "quick"
    duration_s: float = 1.0
    warmup_s: float = 0.3
    loop: str | None = None
    """None: as the tool chooses."""

    def arguments(self, seed: int) -> list[str]:
        """Return the command line after `sqlstress kv`."""
        return [word for name, value in self.options(seed).items() for word in (f"--{name}", value)]

    def options(self, seed: int) -> dict[str, str]:
        """Return the same by name."""
        values: dict[str, object] = {
            "driver": self.driver,
            "concurrency": self.concurrency,
            "buckets": 1,
            "read-ratio": self.read_ratio,
            "synchronous": self.synchronous,
            "busy": self.busy,
            "verify": self.verify,
            "duration": f"{self.duration_s}s",
            "warmup": f"{self.warmup_s}s",
            "repeat": 1,
            "seed": seed,
        }
        if self.loop:
            values["loop"] = self.loop
        return {name: str(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of the command gave."""

    run: Run
    trial: Trial
    wall_s: float
    """From starting the command to its end."""
    report_bytes: int
    """Size of the saved report."""

    @property
    def sample(self) -> Sample:
        """Its throughput and fairness."""
        return Sample(self.trial.tps, self.trial.fairness)


class Tool:
    """Runs `sqlstress kv` with its databases below a folder, and keeps the fingerprint of what it saw."""

    def __init__(self, folder: Path) -> None:
        # An installed package has its bytecode; a checkout may be forbidden to write any
        # (PYTHONDONTWRITEBYTECODE), and each of its processes would compile it again.
        compileall.compile_dir(CHECKOUT / "sqlstress", quiet=2)
        self._folder = folder
        self._environment: Environment | None = None

    def measure(self, case: ToolCase, seed: int) -> Outcome:
        """Measure one case. Raises ToolFailure."""
        return self.kv(case.arguments(seed))

    def kv(self, arguments: list[str], watcher: Watcher | None = None) -> Outcome:
        """Run the command with one case, watched on request. Raises ToolFailure."""
        with TemporaryDirectory(dir=self._folder, prefix="tool-") as own:
            file = Path(own) / "report.json"
            fixed = ["--dir", own, "--quiet", "--no-progress", "-o", f"json:{file}"]
            begun = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", "sqlstress", "kv", *arguments, *fixed],
                cwd=CHECKOUT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            with process, watcher.watching(process.pid) if watcher else nullcontext():
                said = process.communicate()
            wall_s = time.perf_counter() - begun
            if process.returncode:
                words = next((text for text in reversed(said) if text.strip()), "it said nothing")
                raise ToolFailure(f"sqlstress ended with exit code {process.returncode}: {words.strip()}")
            report_bytes = file.stat().st_size
            report = from_json(file.read_text(encoding="utf-8"))
        self._remember(report)
        return Outcome(report.runs[0], _valid_trial(report.runs[0]), wall_s, report_bytes)

    def fingerprint(self, drivers: tuple[str, ...]) -> Environment:
        """Return the environment as the reports have it, with the builds of all these drivers."""
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
    if run.error:
        raise ToolFailure(run.error)
    trial = run.typical()
    if trial is None or trial.error:
        raise ToolFailure(trial.error if trial and trial.error else "the report holds no trial")
    if run.verdict.status == "failed":
        raise ToolFailure(f"the proof failed: {run.verdict.counterexamples[:1]}")
    return trial
