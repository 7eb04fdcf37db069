"""Slices of an A/B test: single trials of arm A or B, in this or in another Python interpreter."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlstress.engine.folder import SLICE_REPORT, RunFolder
from sqlstress.engine.omissions import COSTS, REHEARSAL, RERUNS, VARIABLE
from sqlstress.engine.session import MeasuringSession
from sqlstress.engine.study import Observer
from sqlstress.engine.trial import MAX_RERUNS
from sqlstress.errors import EnvironmentFailure, Interrupted, UsageError
from sqlstress.experiment import experiment_of, get_experiment
from sqlstress.options.parsing import sentence
from sqlstress.registry import DEFAULT
from sqlstress.report import AbTest, Report, Run, Trial, from_json
from sqlstress.report.case import Case
from sqlstress.report.results import Sighting
from sqlstress.system.interrupt import StopSignals
from sqlstress.user_work import REHEARSAL_TOPICS

POLL_S = 0.1
END_S = 10.0
PROGRAM = """
import os, signal, sys, threading, time, _thread

held, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
os.dup2(nothing, 0)
os.close(nothing)

def end_with_parent():
    os.read(held, 1)
    while True:
        _thread.interrupt_main(signal.SIGTERM)
        time.sleep(0.05)

threading.Thread(target=end_with_parent, daemon=True).start()
from sqlstress.__main__ import main
sys.exit(main())
"""
"""Program that runs sqlstress. When its standard input is closed, it stops sqlstress as SIGTERM does.

The signal is repeated, because it has no effect before sqlstress has installed its handlers. Workers get the
null device as standard input: on Windows, no process can start while another reads from the same pipe.
"""


@dataclass(frozen=True, slots=True)
class Python:
    """Python interpreter that measures an arm in other processes, with the options of the arm."""

    name: str
    options: Mapping[str, Any]
    """Unparsed option values, by option name."""
    directory: Path
    command: str = DEFAULT
    """Name of the experiment to measure."""

    def words(self, case: Case, pair: int) -> list[str]:
        """Return the options of a slice (trial) as command-line words. Each pair has its own seed."""
        options = {option.name: option for option in get_experiment(self.command).options}
        slice_options = {
            "repeat": 1,
            "concurrency": case.concurrency,
            "buckets": case.buckets,
            "seed": (case.seed + pair) % (1 << 32),
        }
        all_options = {
            **self.options,
            **{name: value for name, value in slice_options.items() if name in options},
        }
        return [
            f"--{name}" if value is True else f"--{name}={value}"
            for name, values in all_options.items()
            if not options[name].argument
            for value in (values if isinstance(values, tuple) else (values,))
        ]

    @property
    def positional_words(self) -> list[str]:
        """The word "--" and the positional arguments, such as scripts; [] without such arguments."""
        words: list[str] = []
        for name in (option.name for option in get_experiment(self.command).options if option.argument):
            values = self.options.get(name, ())
            words += values if isinstance(values, tuple) else (values,)
        return ["--", *words] if words else []

    def test_run(self, case: Case, check: Callable[[], None]) -> Report:
        """Run a very short trial to test the interpreter, and return its report.

        Raises UsageError or EnvironmentFailure if the interpreter cannot measure.
        """
        short = () if "ops" in self.options else ("--duration=50ms", "--warmup=0", "--verify=none")
        return self.run([*self.words(case, 0), *short], check, [REHEARSAL, RERUNS])

    def run(self, words: Sequence[str], check: Callable[[], None], omissions: Sequence[str] = ()) -> Report:
        """Run sqlstress with the interpreter and return the report.

        `check` is called often, and may raise Interrupted. `omissions` names measurements to omit.
        """
        with RunFolder(self.directory, keep=False) as folder:
            file = folder.path / SLICE_REPORT
            fixed = ("--dir", str(self.directory), "--quiet", "-o", f"json:{file}")
            # Without -P, both arms would import sqlstress from the current folder if it has such a folder.
            arguments = [self.command, *words, *fixed, *self.positional_words]
            code, complaint = self._run_interpreter(["-P", "-c", PROGRAM, *arguments], check, omissions)
            if code in (130, -2, -15):
                raise Interrupted(f"{self.name} was stopped")
            text = file.read_text(encoding="utf-8") if file.is_file() else None
        if text is None:
            kind = UsageError if code == 2 else EnvironmentFailure
            lines = [line.strip() for line in complaint.splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith("Error: ")]
            reason = (errors or lines[-1:] or ["it printed nothing."])[0].removeprefix("Error: ")
            raise kind(
                f"{self.name} cannot measure: {sentence(reason)} Check that sqlstress is installed there."
            )
        return from_json(text)

    def _run_interpreter(
        self, arguments: list[str], check: Callable[[], None], omissions: Sequence[str]
    ) -> tuple[int, str]:
        read_end, write_end = os.pipe()
        with os.fdopen(write_end, "wb") as hold, os.fdopen(read_end, "rb") as held:
            try:
                process = subprocess.Popen(
                    [self.name, *arguments],
                    stdin=held,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env={**os.environ, VARIABLE: " ".join(omissions)},
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError as error:
                message = f"cannot start {self.name}: {error.strerror}. Name an interpreter."
                raise UsageError(message) from error
            with process:
                try:
                    while True:
                        with suppress(subprocess.TimeoutExpired):
                            _, complaint = process.communicate(timeout=POLL_S)
                            return process.returncode, complaint
                        check()
                except BaseException:
                    # Close the pipe, so that the process stops and removes its databases. On Windows,
                    # TerminateProcess would leave them behind.
                    hold.close()
                    try:
                        process.communicate(timeout=END_S)
                    except subprocess.TimeoutExpired:
                        process.kill()
                    raise


def check_loops(cases: tuple[Case, Case], options: Sequence[Mapping[str, Any]]) -> None:
    """Raise UsageError if the arms would use different loops (C, Python), and no option chose the loop."""
    a, b = (experiment_of(case).loop_of(case) for case in cases)
    if a != b and not any("loop" in arm_options for arm_options in options):
        raise UsageError(
            f"A would use the {a} loop and B the {b} loop, which is not a fair comparison. Add --loop python."
        )


SALTS_PER_PAIR = 16
"""Distance of successive pairs' salts: numbers that change the random draws of trials.

Each attempt at a trial adds 1 to its salt. With this difference, no salt is used by two pairs.
"""


@dataclass(frozen=True, slots=True)
class SliceBench:
    """Bench of an A/B test: functions that measure slices (single trials of an arm)."""

    report: Report
    """Report without results: only time, command and environment."""
    observer: Observer
    measure: Callable[[int, Case, int], Trial]
    """Function that measures a slice, given arm (0 or 1), case and number of the pair."""
    learn: Callable[[AbTest], AbTest] = lambda test: test
    """Function that returns a test with each arm's versions of Python and sqlstress."""
    described: Callable[[int, Case], Case] = lambda arm, case: case
    """Function that returns a case as the sqlstress of an arm (0 or 1) reports it."""


class OwnPython:
    """Factory of a bench that measures slices with the Python that runs sqlstress."""

    kept_folder = None

    def __init__(self, cases: Sequence[Case], directory: Path, command: tuple[str, ...]) -> None:
        self._session = MeasuringSession(tuple(cases), directory, False, command)

    @property
    def stayed(self) -> tuple[Path, ...]:
        return self._session.stayed

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[SliceBench]:
        """Yield a bench. Its files are in a folder that is removed at the end of the block."""
        with self._session.opened(observer) as bench:

            def measure(arm: int, case: Case, pair: int) -> Trial:
                bench.runner.salt = case.seed + pair * SALTS_PER_PAIR
                return bench.runner.run(case, pair)

            yield SliceBench(bench.report, observer, measure)


class _OtherBench:
    """Measurement of slices (single trials) by the Python interpreters of the arms.

    Slices do not measure the costs of a sync and of our code, which `test_run` has measured. Only the first
    slice of a case rehearses the user's work on a copy of the data. Later slices get its observations.
    """

    def __init__(self, pythons: Sequence[Python], check: Callable[[], None]) -> None:
        self._pythons, self._check = pythons, check
        self._rehearsals: dict[tuple[int, Any], tuple[Sighting, ...]] = {}
        """Observations of the rehearsal, by (index of the arm, the case's own options)."""
        self._reruns = 0

    def measure(self, arm: int, case: Case, pair: int) -> Trial:
        """Run a trial of `case` with the Python of the arm. Raises SqlstressError."""
        python, key = self._pythons[arm], (arm, case.spec)
        omissions = [COSTS]
        if key in self._rehearsals:
            omissions.append(REHEARSAL)
        if self._reruns >= MAX_RERUNS:
            omissions.append(RERUNS)
        report = python.run(python.words(case, pair), self._check, omissions)
        self._check()
        run: Run | None = next(iter(report.runs), None)
        if run is None or not run.trials:
            reason = run.error if run else "its report is empty"
            raise EnvironmentFailure(f"{python.name} measured nothing: {reason}.")
        trial = replace(run.trials[0], index=pair)
        self._reruns += trial.attempts - 1
        rehearsed = tuple(item for item in trial.sightings if item.topic in REHEARSAL_TOPICS)
        # An older sqlstress rehearses in each slice. Drop what later slices have observed.
        others = (item for item in trial.sightings if item.topic not in REHEARSAL_TOPICS)
        return replace(trial, sightings=(*others, *self._rehearsals.setdefault(key, rehearsed)))


class OtherPythons:
    """Factory of a bench that measures slices (trials) with the Python of each arm."""

    kept_folder = None
    stayed = ()

    def __init__(
        self, pythons: tuple[Python, Python], cases: tuple[Case, Case], command: tuple[str, ...]
    ) -> None:
        """`cases` has the first case of each arm, for a short trial to test the interpreter."""
        self._pythons, self._cases, self._command = pythons, cases, command

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[SliceBench]:
        """Test each arm's interpreter with a short trial, then yield the bench."""
        with StopSignals() as signals:
            pairs = list(zip(self._pythons, self._cases, strict=True))
            test_reports = [python.test_run(case, signals.check) for python, case in pairs]
            # An older sqlstress may lack some fields of the case, so the case in its report is used.
            measured = [
                next((run.case for run in report.runs), case)
                for case, report in zip(self._cases, test_reports, strict=True)
            ]
            check_loops((measured[0], measured[1]), [python.options for python in self._pythons])
            bench = _OtherBench(self._pythons, signals.check)

            def learn(test: AbTest) -> AbTest:
                a, b = (
                    replace(
                        arm,
                        version=report.environment.host.python,
                        tool_version=report.tool_version,
                        builds=report.environment.builds,
                    )
                    for arm, report in zip(test.arms, test_reports, strict=True)
                )
                return replace(test, arms=(a, b))

            def described(arm: int, case: Case) -> Case:
                return replace(case, spec=measured[arm].spec)

            created = datetime.now(UTC).isoformat(timespec="seconds")
            report = Report(created=created, command=self._command, environment=test_reports[0].environment)
            yield SliceBench(report, observer, bench.measure, learn, described)
