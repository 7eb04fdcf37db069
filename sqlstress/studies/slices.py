"""Slices: single trials of one arm, by the Python that runs sqlstress or by another one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlstress.engine.folder import SLICE, RunFolder
from sqlstress.engine.session import Session
from sqlstress.engine.study import Observer
from sqlstress.errors import EnvironmentFailure, Interrupted, UsageError
from sqlstress.experiment import experiment_of, get_experiment
from sqlstress.options.parsing import sentence
from sqlstress.registry import DEFAULT
from sqlstress.report import AbTest, Report, Run, Trial, from_json
from sqlstress.report.case import Case
from sqlstress.system.interrupt import StopSignals

# Another interpreter, whose sqlstress measures a slice for an A/B test.


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
"""sqlstress that stops as if by SIGTERM once nobody holds the other end of its standard input.

Until its command line is there, a SIGTERM of this kind does nothing. The workers' standard input is the null
device: on Windows a process does not get through its start while another one reads from the same pipe.
"""


@dataclass(frozen=True, slots=True)
class Python:
    """Another interpreter, with the options that it is given."""

    name: str
    options: Mapping[str, Any]
    """Unparsed values by option name, as the plan has them."""
    directory: Path
    command: str = DEFAULT
    """The experiment that it is to measure."""

    def words(self, case: Case, pair: int) -> list[str]:
        """Return the options of a slice."""
        known = {option.name: option for option in get_experiment(self.command).options}
        own = {
            "repeat": 1,
            "concurrency": case.concurrency,
            "buckets": case.buckets,
            "seed": (case.seed + pair) % (1 << 32),
        }
        given = {**self.options, **{name: value for name, value in own.items() if name in known}}
        return [
            f"--{name}" if value is True else f"--{name}={value}"
            for name, values in given.items()
            if not known[name].argument
            for value in (values if isinstance(values, tuple) else (values,))
        ]

    @property
    def standing(self) -> list[str]:
        """The words that stand without a name: scripts, a file, a command."""
        found: list[str] = []
        for name in (option.name for option in get_experiment(self.command).options if option.argument):
            values = self.options.get(name, ())
            found += values if isinstance(values, tuple) else (values,)
        return ["--", *found] if found else []

    def taste(self, case: Case, check: Callable[[], None]) -> Report:
        """Return the report of a short slice: whether an arm can be measured, and with what."""
        short = () if "ops" in self.options else ("--duration=50ms", "--warmup=0", "--verify=none")
        return self.run([*self.words(case, 0), *short], check)

    def run(self, words: Sequence[str], check: Callable[[], None]) -> Report:
        """Return the report of its sqlstress with these options; calls `check` often, which may raise."""
        with RunFolder(self.directory, keep=False) as own:
            file = own.path / SLICE
            fixed = ("--dir", str(self.directory), "--quiet", "-o", f"json:{file}")
            # Without -P, a folder named sqlstress that we happen to stand in would be run for both arms.
            given = [self.command, *words, *fixed, *self.standing]
            code, said = self._call(["-P", "-c", PROGRAM, *given], check)
            if code in (130, -2, -15):
                raise Interrupted(f"{self.name} was stopped")
            text = file.read_text(encoding="utf-8") if file.is_file() else None
        if text is None:
            kind = UsageError if code == 2 else EnvironmentFailure
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith("Error: ")]
            reason = (errors or lines[-1:] or ["it printed nothing."])[0].removeprefix("Error: ")
            raise kind(
                f"{self.name} cannot measure: {sentence(reason)} Check that sqlstress is installed there."
            )
        return from_json(text)

    def _call(self, arguments: list[str], check: Callable[[], None]) -> tuple[int, str]:
        """Return the exit code of the interpreter and what it complained of."""
        theirs, ours = os.pipe()
        with os.fdopen(ours, "wb") as hold, os.fdopen(theirs, "rb") as held:
            try:
                process = subprocess.Popen(
                    [self.name, *arguments],
                    stdin=held,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError as error:
                why = f"cannot start {self.name}: {error.strerror}. Name an interpreter."
                raise UsageError(why) from error
            with process:
                try:
                    while True:
                        with suppress(subprocess.TimeoutExpired):
                            _, said = process.communicate(timeout=POLL_S)
                            return process.returncode, said
                        check()
                except BaseException:
                    # Nobody holds it any more: it removes its databases itself if it is let, which Windows'
                    # way to terminate a process would not do.
                    hold.close()
                    try:
                        process.communicate(timeout=END_S)
                    except subprocess.TimeoutExpired:
                        process.kill()
                    raise


# The arms of an A/B test are driven by the same loop, unless somebody asks for another one.


def check_loops(cases: tuple[Case, Case], options: Sequence[Mapping[str, Any]]) -> None:
    """Raise UsageError where another loop drives the load of each arm, and nobody has asked for that.

    `options` are those of each arm, by name.
    """
    a, b = (experiment_of(case).loop_of(case) for case in cases)
    if a != b and not any("loop" in own for own in options):
        raise UsageError(
            f"A would use the {a} loop and B the {b} loop, which is not a fair comparison. Add --loop python."
        )


SALTS = 16
"""Numbers between the salts of two pairs: more than a trial is begun again."""


@dataclass(frozen=True, slots=True)
class SliceBench:
    """Where slices are measured."""

    report: Report
    """Without runs: when, by which command, where."""
    observer: Observer
    measure: Callable[[int, Case, int], Trial]
    """(arm, 0 or 1; case; pair) → the trial, its index that of the pair. Raises SqlstressError."""
    learn: Callable[[AbTest], AbTest] = lambda test: test
    """Adds to an A/B test what is known of its arms."""
    described: Callable[[int, Case], Case] = lambda arm, case: case
    """(arm, case) → the case as that arm's Python measures it."""


class OwnPython:
    """Opens benches whose slices are trials of this process."""

    kept_folder = None

    def __init__(self, cases: Sequence[Case], directory: Path, command: tuple[str, ...]) -> None:
        self._session = Session(tuple(cases), directory, False, command)

    @property
    def stayed(self) -> tuple[Path, ...]:
        return self._session.stayed

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[SliceBench]:
        """Yield a bench, in a folder that is removed afterwards."""
        with self._session.opened(observer) as bench:

            def measure(arm: int, case: Case, pair: int) -> Trial:
                bench.runner.salt = case.seed + pair * SALTS
                return bench.runner.run(case, pair)

            yield SliceBench(bench.report, observer, measure)


class OtherPythons:
    """Opens benches whose slices are whole runs of sqlstress, each by the Python of its arm."""

    kept_folder = None
    stayed = ()

    def __init__(
        self, pythons: tuple[Python, Python], cases: tuple[Case, Case], command: tuple[str, ...]
    ) -> None:
        """`cases` are the first ones of the arms: with them the Pythons are tasted."""
        self._pythons, self._cases, self._command = pythons, cases, command

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[SliceBench]:
        """Yield a bench, when both Pythons have been tasted."""
        with StopSignals() as signals:
            pairs = list(zip(self._pythons, self._cases, strict=True))
            tasted = [python.taste(case, signals.check) for python, case in pairs]
            # An older one may lack some of what it is asked for.
            measured = [
                next((run.case for run in report.runs), case)
                for case, report in zip(self._cases, tasted, strict=True)
            ]
            check_loops((measured[0], measured[1]), [python.options for python in self._pythons])

            def measure(arm: int, case: Case, pair: int) -> Trial:
                python = self._pythons[arm]
                report = python.run(python.words(case, pair), signals.check)
                signals.check()
                run: Run | None = next(iter(report.runs), None)
                if run is None or not run.trials:
                    why = run.error if run else "its report is empty"
                    raise EnvironmentFailure(f"{python.name} measured nothing: {why}.")
                return replace(run.trials[0], index=pair)

            def learn(test: AbTest) -> AbTest:
                a, b = (
                    replace(
                        arm,
                        version=report.environment.host.python,
                        tool_version=report.tool_version,
                        builds=report.environment.builds,
                    )
                    for arm, report in zip(test.arms, tasted, strict=True)
                )
                return replace(test, arms=(a, b))

            def described(arm: int, case: Case) -> Case:
                return replace(case, spec=measured[arm].spec)

            created = datetime.now(UTC).isoformat(timespec="seconds")
            report = Report(created=created, command=self._command, environment=tasted[0].environment)
            yield SliceBench(report, observer, measure, learn, described)
