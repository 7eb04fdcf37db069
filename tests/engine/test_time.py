"""Measurements during which the wall clock is set or all processes are stopped."""

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from sqlstress.engine.trial import MIN_STALL_S
from tests.engine.processes import Command, saved_report, sqlstress
from tests.rows import fault

FROZEN = (sys.executable, str(Path(__file__).with_name("frozen.py")))
KV = (
    *("kv", "-c", "2", "--key-space", "500", "--repeat", "1", "--synchronous", "off"),
    *("--duration", "200ms", "--warmup", "100ms"),
)
LONGER = ("--duration", "500ms")
"""Long enough for at least one progress report."""
DRY = ("kv", "-c", "1", "--driver", "dry", "--repeat", "1", *LONGER, "--warmup", "50ms")
SAVED = ("-o", "report.json", "--quiet")

STEPPING = """
import itertools, os, pathlib, time

true, steps = time.time, itertools.count()
time.time = lambda: true() + (next(steps) * 86_400 if os.getpid() % 2 else -next(steps) * 86_400)
time.time_ns = lambda: int(time.time() * 1e9)
pathlib.Path({place!r}, f"stepping-{{os.getpid()}}").touch()
"""
"""Each reading of a process's wall clock jumps by another day, forwards or backwards."""


@pytest.mark.thorough
@fault("time", "the wall clock stepped by a day at every look", "nothing changes")
def test_jumping_wall_clock_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, place = tmp_path / "own", tmp_path / "place"
    own.mkdir()
    place.mkdir()
    (own / "sitecustomize.py").write_text(STEPPING.format(place=str(own)), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(own))
    start_s = time.monotonic()
    code, _, errors = sqlstress(place, *KV, *SAVED)
    (run,) = saved_report(place).runs
    (trial,) = run.trials
    assert len(list(own.glob("stepping-*"))) >= 3, "the clock jumps in the program and in both workers"
    assert (code, errors, run.verdict.status, trial.error) == (0, "", "ok", None)
    assert trial.seconds == 0.2
    longest_ns = max(latency.max_ns for latency in trial.latency.values())
    assert 0 < longest_ns < (time.monotonic() - start_s) * 1e9


def thaw(command: Command) -> None:
    """Continue a command that has stopped itself, after a delay, like a resumed virtual machine."""
    program = psutil.Process(command.process.pid)
    command.until(lambda: program.status() == psutil.STATUS_STOPPED, "stop of it")
    if sys.platform != "win32":
        time.sleep(MIN_STALL_S + 0.3)
        os.killpg(command.process.pid, signal.SIGCONT)


@pytest.mark.thorough
@fault("time", "all processes stopped during a window, as on a suspended machine", "the trial is run again")
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_stopped_trial_is_repeated(tmp_path: Path) -> None:
    with Command(tmp_path, *KV, *LONGER, *SAVED, program=(*FROZEN, "1")) as command:
        thaw(command)
        code, _, errors = command.finish()
    (run,) = saved_report(tmp_path).runs
    assert (code, errors, run.verdict.status) == (0, "", "ok")
    (trial,) = run.trials
    # On a busy machine a worker may come late to the second attempt.
    assert trial.attempts > 1 and trial.error is None
    assert (trial.longest_wait_ns or 0) < MIN_STALL_S * 1e9


@pytest.mark.thorough
@fault("time", "all processes stopped in every window", "exit 4 after three attempts")
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_trial_stopped_three_times_is_invalid(tmp_path: Path) -> None:
    with Command(tmp_path, *DRY, *SAVED, program=(*FROZEN, "3")) as command:
        for _ in range(3):
            thaw(command)
        code, _, errors = command.finish()
    (run,) = saved_report(tmp_path).runs
    text = "the machine slept, or this program was stopped, while it measured 3 times"
    assert (code, run.valid) == (4, ())
    assert (run.error or "").startswith(text)
    assert text in errors
