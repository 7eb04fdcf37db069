"""SIGKILL to the program itself: its processes end, and the next start removes its files."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median

import pytest

from sqlstress.cli.commands import run
from sqlstress.engine.folder import MARKER
from tests.engine.processes import Command, gone, sqlstress
from tests.faults.commands import EVERYWHERE, EXPERIMENTS, HERE_AND_THERE, SHORT, Held, left
from tests.faults.held import MOMENTS
from tests.rows import fault, mostly_long, mostly_thorough

KILLED_AT_ANY_MOMENT = fault(
    "parent",
    "SIGKILL at any moment to `kv`, `methods`, `keys`, `cycles`, `crash` or `ab`",
    "no process is left; the next start removes the folder",
)

BESIDE = ("--checkpointer", "restart", "--pinned-reader")
KV = ("kv", "-c", "3", *SHORT, *BESIDE, "-o", "report.json")
KILLS = 100
AT_MOST_S = 2.5
"""Seconds that a measurement of KV takes: the kills are spread over this time."""


@KILLED_AT_ANY_MOMENT
@pytest.mark.parametrize("moment", mostly_thorough(MOMENTS, ("measuring",)))
def test_kill_at_any_moment_leaves_no_process_and_no_file_after_a_start(tmp_path: Path, moment: str) -> None:
    with Held(tmp_path, moment, *KV) as command:
        children = command.children()
        markers = [folder / MARKER for folder in command.folders()]
        command.process.kill()
        assert gone(children)
        command.finish()
    assert len(markers) == (moment != "showing")
    # Companions of the workers end on request; the workers may have done their work by that time.
    assert len(children) >= {"starting": 0, "measuring": 3}.get(moment, 0)
    assert all(marker.exists() for marker in markers)
    start_again(tmp_path)
    assert left(tmp_path) == ["report.json"]


def start_again(place: Path) -> None:
    """Run a short measurement there that writes the report of the killed one."""
    brief = ("--driver=dry", "-c1", "--repeat=1", "--duration=10ms", "--warmup=0", "--key-space=9", "--quiet")
    assert run([*brief, "--dir", str(place), "-o", str(place / "report.json")]) == 0


@KILLED_AT_ANY_MOMENT
@pytest.mark.thorough
@pytest.mark.parametrize(("experiment", "moment"), mostly_long(EVERYWHERE, HERE_AND_THERE))
def test_kill_of_any_experiment_leaves_no_process(tmp_path: Path, experiment: str, moment: str) -> None:
    with Held(tmp_path, moment, *EXPERIMENTS[experiment], "-o", "report.json") as command:
        children = command.children()
        command.process.kill()
        assert gone(children)
        command.finish()
    start_again(tmp_path)
    assert left(tmp_path) == ["report.json"]


@pytest.mark.thorough
@fault(
    "parent",
    "SIGKILL to `ab` while another Python measures",
    "the other Python stops; the next start removes the folder",
)
def test_kill_of_a_comparison_stops_the_other_python(tmp_path: Path) -> None:
    pythons = ("--python-a", sys.executable, "--python-b", sys.executable)
    with Command(tmp_path, "ab", *pythons, "-c", "2", "--duration", "60s", "--key-space", "500") as command:
        command.await_load(2)
        children = command.children()
        command.process.kill()
        assert gone(children)
        command.finish()
    assert run(["doctor", "--dir", str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []


@KILLED_AT_ANY_MOMENT
@pytest.mark.long
def test_hundred_kills_leave_no_process_and_one_folder_at_most(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    draw = Random("kills")
    left_s: list[float] = []
    for _ in range(KILLS):
        with Command(tmp_path, *KV, "-c", "1-3") as command:
            time.sleep(draw.uniform(0.1, AT_MOST_S))
            children = command.children()
            command.process.kill()
            killed = time.monotonic()
            assert gone(children)
            left_s.append(time.monotonic() - killed)
            _, said = command.process.communicate()
        # Children that had not begun lose their parent, which Python reports in its own words.
        frames = [line for line in said.splitlines() if line.startswith('  File "')]
        assert [line for line in frames if "multiprocessing" not in line and "<string>" not in line] == []
        assert len(command.folders()) <= 1
    assert median(left_s) < 1.0
    record_property("seconds until no process was left, at most", round(max(left_s), 3))
    assert sqlstress(tmp_path, *KV)[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
