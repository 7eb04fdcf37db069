"""A crash test that is itself stopped, or killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.engine.processes import Command, gone, saved_report, sqlstress

ENDLESS = ("crash", "--rounds", "1_000_000", "--seed", "1", "-o", "report.json")
"""The first round of this seed is killed from its first acknowledged transaction on."""


def left(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name != "report.json"]


def under_way(command: Command) -> None:
    """Wait until a round has been saved, and the writers of another one are there."""
    command.until(lambda: (command.place / "report.json").exists(), "report")
    command.until(lambda: len(command.workers()) == 3, "writers")


def strike(command: Command, name: str) -> None:
    """Send a signal to the command and to all its writers, as a terminal does."""
    if sys.platform != "win32":
        os.killpg(command.process.pid, signal.Signals[name])


@pytest.mark.fault(
    area="crash",
    injected="Ctrl-C or SIGTERM to a crash test and all its writers",
    outcome="exit code 130; what was proved is saved, nothing is left",
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_crash_test_that_is_stopped_keeps_what_it_proved_and_leaves_nothing(
    tmp_path: Path, name: str
) -> None:
    with Command(tmp_path, *ENDLESS) as command:
        under_way(command)
        children = command.children()
        strike(command, name)
        code, output, errors = command.finish()
    kills = saved_report(tmp_path).results["crash"]
    rounds = kills.rounds
    assert code == 130
    assert gone(children)
    assert left(tmp_path) == []
    assert saved_report(tmp_path).interrupted
    assert kills.acknowledged > 0
    assert errors == f"Stopped after {rounds:,} of 1,000,000 rounds; what was proved is in report.json.\n"
    assert f"Interrupted after {rounds:,} of 1,000,000 rounds" in output


@pytest.mark.fault(
    area="crash",
    injected="SIGKILL to a crash test",
    outcome="its writers end at once; the next start removes the databases",
)
def test_a_crash_test_that_is_killed_takes_its_writers_along(tmp_path: Path) -> None:
    with Command(tmp_path, *ENDLESS, "--quiet") as command:
        under_way(command)
        children = command.children()
        command.process.kill()
        assert gone(children, within_s=20)
        command.finish()
    assert "crash" in saved_report(tmp_path).results
    assert sqlstress(tmp_path, "doctor")[0] == 0
    assert left(tmp_path) == []
