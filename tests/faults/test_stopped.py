"""The user stops the program: Ctrl-C, SIGTERM, a closed terminal, at every moment and for every command."""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.processes import Command, gone, saved_report, sqlstress
from tests.faults.commands import (
    EVERYWHERE,
    EXPERIMENTS,
    HERE_AND_THERE,
    REPORT,
    SHORT,
    Held,
    left,
    posix,
    second_case,
    stopped,
    strike,
)
from tests.faults.held import MOMENTS
from tests.rows import fault, mostly_long, mostly_thorough, thorough

STOPPED_AT_ANY_MOMENT = fault(
    "stop",
    "Ctrl-C, SIGTERM, SIGHUP or a closed terminal at any moment",
    "exit 130; the finished cases are kept",
)

pytestmark = posix

DONE = "Error: stopped; what was measured is in report.json.\n"
ENDS = {"examining": (0, "Stopped after 0 of 2 cases.\n"), "saving": (2, DONE), "showing": (2, DONE)}
"""Moment → number of kept cases and the message; after the first case at all other moments."""
BETWEEN = (1, "Stopped after 1 of 2 cases; what was measured is in report.json.\n")


def check_kept(place: Path, moment: str) -> str:
    """Check that the finished cases are kept, and no other file; return the expected message."""
    kept, said = ENDS.get(moment, BETWEEN)
    assert left(place) == ["plan.toml", *(["report.json"] if kept else [])]
    if kept:
        report = saved_report(place)
        assert [run.verdict.status for run in report.runs] == ["ok"] * kept
        assert report.interrupted == (kept < report.planned)
    return said


SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
IN_TURN = [(moment, SIGNALS[number % 3]) for number, moment in enumerate(MOMENTS)]
"""Every moment, and every signal: the same handler receives all signals."""
WITH_OUTPUT = ("measuring", "saving", "showing")
"""Moments at which the command writes to the terminal soon."""
SOME_MOMENTS = ("examining", "measuring", "verifying", "saving")


@STOPPED_AT_ANY_MOMENT
@pytest.mark.parametrize(
    ("moment", "name"), mostly_thorough(IN_TURN, {("measuring", "SIGINT"), ("saving", "SIGHUP")})
)
def test_signal_at_any_moment_keeps_finished_cases_and_no_other_file(
    tmp_path: Path, moment: str, name: str
) -> None:
    with second_case(tmp_path, moment) as command:
        code, _, errors = stopped(command, name)
    assert (code, errors) == (130, check_kept(tmp_path, moment))


def hammer(command: Command) -> threading.Thread:
    """Send Ctrl-C again and again, until the command has ended."""

    def press() -> None:
        while command.process.poll() is None:
            try:
                strike(command, "SIGINT")
            except ProcessLookupError:
                return
            time.sleep(0.001)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


@pytest.mark.thorough
@fault(
    "stop",
    "Ctrl-C a thousand times a second, from any moment on",
    "exit 130, one line; the finished cases are kept",
)
@pytest.mark.parametrize("moment", mostly_long(MOMENTS, SOME_MOMENTS))
def test_repeated_ctrl_c_is_harmless(tmp_path: Path, moment: str) -> None:
    with second_case(tmp_path, moment) as command:
        children = command.children()
        strike(command, "SIGINT")
        thread = hammer(command)
        code, _, errors = command.finish()
        thread.join()
    assert code == 130
    # If it is struck while it prints the report, it prints the message instead.
    assert errors in (check_kept(tmp_path, moment), DONE, "Error: stopped.\n")
    assert gone(children)


@pytest.mark.thorough
@fault(
    "stop",
    "Ctrl-C at any moment to `methods`, `keys`, `cycles`, `crash`, `sql`, `app`, `limit` or `ab`",
    "exit 130; the finished cases are kept",
)
@pytest.mark.parametrize(("experiment", "moment"), mostly_long(EVERYWHERE, HERE_AND_THERE))
def test_every_experiment_can_be_stopped(tmp_path: Path, experiment: str, moment: str) -> None:
    with Held(tmp_path, moment, *EXPERIMENTS[experiment], *REPORT) as command:
        code, _, errors = stopped(command)
    assert code == 130
    assert re.fullmatch(r"(Stopped after \d.*|Error: stopped; what .*)\n", errors)
    assert left(tmp_path) == (["report.json"] if "report.json" in errors else [])


@fault(
    "stop", "a slice of another Python in `ab` stopped", "exit 130; its processes and databases are gone too"
)
@pytest.mark.thorough
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_slice_of_another_python_is_stopped_too(tmp_path: Path, name: str) -> None:
    pythons = ("--python-a", sys.executable, "--python-b", sys.executable)
    arguments = ("ab", *pythons, "-c", "2", "--duration", "60s", "--key-space", "500", *REPORT)
    with Command(tmp_path, *arguments) as command:
        children = command.await_load(2)
        code, output, errors = stopped(command, name)
    assert (code, output) == (130, "")
    # Both Pythons are tried before they are measured, and either of the two processes may be the first to
    # report it.
    assert re.fullmatch(r"(Stopped after 0 slices\.|Error: (stopped by SIG\w+|.* was stopped))\n", errors)
    assert gone(children)
    assert list(tmp_path.iterdir()) == []


@contextmanager
def terminal() -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield our end of a terminal, to be closed, and the options that make it the terminal of a process."""
    if sys.platform == "win32":
        yield 0, {}
    else:
        import fcntl
        import pty
        import termios

        ours, theirs = pty.openpty()
        # The terminal sends SIGHUP only to processes whose controlling terminal it is.
        control = {"preexec_fn": lambda: fcntl.ioctl(0, termios.TIOCSCTTY)}
        try:
            yield ours, {"stdin": theirs, "stdout": theirs, "stderr": theirs, **control}
        finally:
            os.close(theirs)


@pytest.mark.thorough
@STOPPED_AT_ANY_MOMENT
def test_closed_terminal_stops_the_command_and_its_progress_bar(tmp_path: Path) -> None:
    with (
        terminal() as (ours, streams),
        Command(tmp_path, "kv", "-c", "2", "--key-space", "500", "--duration", "60s", **streams) as command,
    ):
        workers = command.await_load(2)
        os.close(ours)
        code, _, _ = command.finish()
    assert code == 130
    assert gone(workers)
    assert list(tmp_path.iterdir()) == []


@STOPPED_AT_ANY_MOMENT
@pytest.mark.thorough
@pytest.mark.parametrize("moment", mostly_long(MOMENTS, WITH_OUTPUT))
def test_closed_terminal_at_any_moment_keeps_the_finished_cases(tmp_path: Path, moment: str) -> None:
    with terminal() as (ours, streams), second_case(tmp_path, moment, **streams) as command:
        children = command.children()
        os.close(ours)
        code, _, _ = command.finish()
    assert code == 130
    assert gone(children)
    check_kept(tmp_path, moment)


@pytest.mark.thorough
@fault("stop", "a signal that is ignored from outside (`nohup`)", "it stays ignored")
def test_nohup_is_respected(tmp_path: Path) -> None:
    ignoring: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.Signals["SIGHUP"], signal.SIG_IGN)}
    with Held(tmp_path, "measuring", "kv", "-c", "1", *SHORT, *REPORT, **ignoring) as command:
        code, _, errors = stopped(command, "SIGHUP")
    assert (code, errors) == (0, "")
    assert left(tmp_path) == ["report.json"]


@pytest.mark.thorough
@fault("stop", "Ctrl-C while nobody reads the pipe that the report goes to", "exit 130")
def test_blocked_write_to_a_pipe_can_be_stopped(tmp_path: Path) -> None:
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe.csv")
    arguments = ("kv", "-c", "1", *SHORT, *REPORT, "-o", "pipe.csv", "--no-progress")
    with Command(tmp_path, *arguments) as command:
        command.until(lambda: (tmp_path / "report.json").exists() and not command.folders(), "end of it")
        code, _, errors = stopped(command)
    assert (code, errors) == (130, DONE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe.csv", "report.json"]


MUCH = """
workload = "kv"
warmup = "50ms"
[[case]]
concurrency = 1
key-space = 100
duration = "50ms"
[[case]]
concurrency = {concurrency}
key-space = {keys}
duration = "{duration}"
[[case]]
concurrency = 1
"""
"""A finished case, a case that is stopped amid much work, and a case that must not begin."""


@pytest.mark.thorough
@fault("stop", "Ctrl-C while millions of keys are written or verified, or many workers start", "exit 130")
@pytest.mark.parametrize(
    ("moment", "concurrency", "keys", "duration"),
    [("preparing", 1, 1_500_000, "60s"), ("starting", 16, 1000, "60s"), ("verifying", 1, 150_000, "50ms")],
)
def test_stop_during_the_load_leaves_no_file_and_saves_finished_cases(
    tmp_path: Path, moment: str, concurrency: int, keys: int, duration: str
) -> None:
    text = MUCH.format(concurrency=concurrency, keys=keys, duration=duration)
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    with Held(tmp_path, moment, "run", "plan.toml", *REPORT, count=2) as command:
        command.let_go()
        if moment == "preparing":
            command.until(lambda: command.files("kv.db"), "database")
        if moment == "starting":
            # Some of the workers are still importing, where Python would answer Ctrl-C with a traceback.
            command.until(lambda: len(command.workers()) > 4, "workers")
        code, _, errors = stopped(command)
    report = saved_report(tmp_path)
    assert code == 130
    assert left(tmp_path) == ["plan.toml", "report.json"]
    assert report.interrupted
    assert report.planned == 3
    assert report.runs[0].error is None
    # A trial that is already verified when the signal is noticed is kept.
    assert len(report.runs) in ((1, 2) if moment == "verifying" else (1,))
    assert errors == f"Stopped after {len(report.runs)} of 3 cases; what was measured is in report.json.\n"


BESIDE = ("--checkpointer", "restart", "--pinned-reader", "--checkpoint-interval", "10s")


@fault("stop", "SIGTERM to the program alone, in the window", "exit 130; its processes end too")
@pytest.mark.parametrize("beside", [(), thorough(BESIDE)], ids=["workers", "and others"])
def test_stop_of_the_parent_alone_ends_its_processes(tmp_path: Path, beside: tuple[str, ...]) -> None:
    arguments = ("kv", "-c", "2", "--key-space", "500", "--duration", "60s", *beside)
    with Command(tmp_path, *arguments) as command:
        workers = command.await_load(2 if not beside else 5)
        command.process.terminate()
        code, output, errors = command.finish()
    assert (code, output, errors) == (130, "", "Stopped after 0 of 1 cases.\n")
    assert gone(workers)
    assert list(tmp_path.iterdir()) == []


@fault("stop", "Ctrl-C while Python loads the program", "exit 130, no traceback")
def test_stop_before_the_command_line_is_loaded_shows_no_traceback(tmp_path: Path) -> None:
    struck = "import os, signal; os.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "click.py").write_text(struck, encoding="utf-8")
    program = (
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, '.'); import sqlstress.__main__ as m;sys.exit(m.main())",
    )
    code, output, errors = sqlstress(tmp_path, program=program)
    assert (code, output, errors) == (130, "", "")


@pytest.mark.thorough
@fault("crash", "Ctrl-C or SIGTERM to a crash test in its second round", "exit 130; what was proved is kept")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_stopped_crash_test_keeps_its_results(tmp_path: Path, name: str) -> None:
    with Held(tmp_path, "starting", *EXPERIMENTS["crash"], *REPORT, count=2) as command:
        code, output, errors = stopped(command, name)
    report = saved_report(tmp_path)
    kills = report.results["crash"]
    assert code == 130
    assert errors == "Stopped after 1 of 2 rounds; what was proved is in report.json.\n"
    assert "Interrupted after 1 of 2 rounds" in output
    assert (report.interrupted, kills.rounds) == (True, 1)
    assert kills.acknowledged > 0
    assert left(tmp_path) == ["report.json"]
