"""What happens when things go wrong, with real processes and real signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.processes import Command, environment, gone, saved_report, sqlstress
from tests.rows import thorough

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals, shells and limits of POSIX")
KILLED = "ended with exit code" if sys.platform == "win32" else "was killed by SIGKILL"

BRIEF = ("--duration", "50ms", "--warmup", "50ms", "--key-space", "500", "--no-progress")
DRY = (*BRIEF, "--driver", "dry")
LONG = ("--duration", "2s", "--warmup", "500ms", "--key-space", "500", "--synchronous", "off")
BESIDE = ("--checkpointer", "restart", "--pinned-reader", "--checkpoint-interval", "10s")
TELLING = (sys.executable, str(Path(__file__).with_name("telling.py")))

# Fair, since SQLite's own handler may starve a worker for the whole window.
KILLED_PLAN = """
workload = "kv"
key-space = 2000
synchronous = "normal"
busy = "fair"
[[case]]
concurrency = 3
warmup = "1s"
duration = "3s"
[[case]]
concurrency = 1
duration = "100ms"
"""

STOPPED_PLAN = """
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
"""A case that is finished, one that is stopped, one that must not begin."""


def plan(place: Path, text: str) -> str:
    path = place / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def left(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name not in ("plan.toml", "report.json")]


def strike(command: Command, name: str) -> None:
    """Send a signal to the command and to everything it has started, as a terminal does."""
    if sys.platform != "win32":
        os.killpg(command.process.pid, signal.Signals[name])


# A worker that dies


@pytest.mark.fault(
    area="workers",
    injected="a worker killed in the window (SIGKILL)",
    outcome="exit code 4; its case says so, the others' figures are kept and verified, the next case runs",
)
def test_a_killed_worker_fails_its_case_only_and_the_others_figures_are_kept(tmp_path: Path) -> None:
    with Command(tmp_path, "run", plan(tmp_path, KILLED_PLAN), "-o", "report.json") as command:
        victim = command.await_load(3)[1]
        victim.kill()
        code, output, errors = command.finish()
    report = saved_report(tmp_path)
    killed, following = report.runs
    (trial,) = killed.trials
    dead = [one for one in trial.workers if one.error]
    assert code == 4
    assert [(one.error or "")[: len(KILLED)] for one in dead] == [KILLED]
    assert f"worker {dead[0].worker} {dead[0].error}; the others' figures are kept" in errors
    assert f"worker {dead[0].worker} {KILLED}" in re.sub(r"\s+", " ", output)
    assert [one.transactions > 0 for one in trial.workers] == [one not in dead for one in trial.workers]
    assert trial.transactions == sum(one.transactions for one in trial.workers)
    assert killed.verdict.status == "ok"
    assert (following.error, following.verdict.status, report.interrupted) == (None, "ok", False)
    assert left(tmp_path) == []


@pytest.mark.thorough
@pytest.mark.fault(
    area="workers",
    injected="a worker killed while it starts",
    outcome="exit code 4; its case has no figures and says so, the next case runs",
)
def test_a_worker_killed_while_starting_fails_its_case_only(tmp_path: Path) -> None:
    with Command(tmp_path, *BRIEF, "-c", "6,1", "-o", "report.json") as command:
        command.until(command.workers, "worker")[0].kill()
        code, _, errors = command.finish()
    failed, following = saved_report(tmp_path).runs
    assert code == 4
    assert re.search(rf"worker [1-6] could not start: {KILLED}", errors)
    assert failed.error is not None
    assert (failed.trials, following.error) == ((), None)
    assert left(tmp_path) == []


# A process beside the workers dies


@pytest.mark.fault(
    area="workers",
    injected="the checkpointing process killed in the window",
    outcome="exit code 4; the case says so, the workers' figures are kept and verified",
)
def test_a_killed_checkpointer_is_told_and_the_workers_figures_are_kept(tmp_path: Path) -> None:
    # Fair, since SQLite's own handler may starve a worker for the whole window.
    beside = ("--busy", "fair", "--checkpointer", "restart", "--pinned-reader")
    with Command(tmp_path, "kv", "-c", "2", *LONG, *beside, "-o", "report.json") as command:
        started = sorted(command.await_load(5), key=lambda process: process.create_time())
        started[2].kill()
        code, output, errors = command.finish()
    (run,) = saved_report(tmp_path).runs
    (trial,) = run.trials
    assert code == 4
    assert run.error == trial.error == f"the checkpointer {KILLED}; the workers' figures are kept"
    assert f"the checkpointer {KILLED}" in re.sub(r"\s+", " ", output)
    assert f"the checkpointer {KILLED}" in errors
    assert all(one.error is None and one.transactions > 0 for one in trial.workers)
    assert (run.verdict.status, left(tmp_path)) == ("ok", [])
    assert "WAL size" in {one.name for one in trial.series if one.values}


# Somebody stops it


@pytest.mark.fault(
    area="stop",
    injected="Ctrl-C while millions of keys are written or verified, many workers start, or all write",
    outcome="exit code 130; what was finished is saved, nothing is left",
)
@posix
@pytest.mark.parametrize(
    ("phase", "name", "concurrency", "keys", "duration"),
    [
        thorough("preparing", "SIGINT", 1, 1_500_000, "60s"),
        thorough("starting", "SIGINT", 16, 1000, "60s"),
        thorough("verifying", "SIGINT", 1, 150_000, "50ms"),
    ],
)
def test_a_stop_in_any_phase_leaves_nothing_and_saves_what_was_finished(
    tmp_path: Path, phase: str, name: str, concurrency: int, keys: int, duration: str
) -> None:
    text = STOPPED_PLAN.format(concurrency=concurrency, keys=keys, duration=duration)
    with Command(
        tmp_path, "run", plan(tmp_path, text), "-o", "report.json", "--quiet", program=TELLING
    ) as command:
        told = iter(command.process.stdout or ())
        while next(told) != "case 2\n":
            pass
        while next(told) != f"{phase}\n":
            pass
        if phase == "preparing":
            command.until(lambda: command.files("kv.db"), "database")
        if phase == "starting":
            # Some of them are importing by then, where Python would answer Ctrl-C with a traceback.
            command.until(lambda: len(command.workers()) > 4, "workers")
        children = command.children()
        strike(command, name)
        code, output, errors = command.finish()
    report = saved_report(tmp_path)
    assert code == 130
    assert gone(children)
    assert left(tmp_path) == []
    assert "case 3" not in output
    assert report.interrupted
    assert report.planned == 3
    assert report.runs[0].error is None
    # A trial that has been verified when the signal is noticed is kept.
    assert len(report.runs) in ((1, 2) if phase == "verifying" else (1,))
    assert errors == (f"Stopped after {len(report.runs)} of 3 cases; what was measured is in report.json.\n")


@pytest.mark.fault(
    area="stop",
    injected="SIGTERM to the program alone, in the window",
    outcome="exit code 130; its processes end too",
)
@posix
@pytest.mark.parametrize("beside", [(), thorough(BESIDE)], ids=["workers", "and others"])
def test_a_stop_of_the_parent_alone_ends_its_processes_too(tmp_path: Path, beside: tuple[str, ...]) -> None:
    arguments = ("kv", "-c", "2", "--key-space", "500", "--duration", "60s", *beside)
    with Command(tmp_path, *arguments) as command:
        workers = command.await_load(2 if not beside else 5)
        command.process.terminate()
        code, output, errors = command.finish()
    assert (code, output, errors) == (130, "", "Stopped after 0 of 1 cases.\n")
    assert gone(workers)
    assert left(tmp_path) == []


@pytest.mark.fault(
    area="stop",
    injected="Ctrl-C while Python still loads the program",
    outcome="exit code 130, no traceback",
)
@posix
def test_a_stop_before_the_command_line_is_there_shows_no_traceback(tmp_path: Path) -> None:
    struck = "import os, signal; os.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "click.py").write_text(struck, encoding="utf-8")
    program = (
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, '.'); import sqlstress.__main__ as m;sys.exit(m.main())",
    )
    code, output, errors = sqlstress(tmp_path, program=program)
    assert (code, output, errors) == (130, "", "")


# Nobody reads, nothing can be written


@pytest.mark.fault(
    area="stop",
    injected="the standard output closed by its reader",
    outcome="exit code 0; the report is saved",
)
@posix
def test_a_reader_that_has_had_enough_is_no_error(tmp_path: Path) -> None:
    with Command(tmp_path, *DRY, "-c", "1", "-o", "report.json") as command:
        assert command.process.stdout is not None
        command.process.stdout.close()
        command.process.stdout = None
        code, _, errors = command.finish()
    assert (code, errors) == (0, "")
    assert len(saved_report(tmp_path).runs) == 1


@pytest.mark.fault(
    area="stop",
    injected="the reader of `--help` gone",
    outcome="exit code 0, no message",
)
@posix
def test_help_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m sqlstress kv --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.thorough
@pytest.mark.fault(
    area="resources",
    injected="a full disk behind the standard output",
    outcome="exit code 4 and a message; the report is saved",
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_the_standard_output_is_told(tmp_path: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        code, _, errors = sqlstress(tmp_path, *DRY, "-c", "1", "-o", "report.json", stdout=full)
    assert (code, errors) == (4, "Error: cannot write to the standard output: No space left on device.\n")
    assert (tmp_path / "report.json").exists()


@pytest.mark.fault(
    area="stop",
    injected="standard output and standard error closed from the start",
    outcome="exit code 0; the report is saved",
)
@posix
def test_no_standard_streams_at_all_are_no_error(tmp_path: Path) -> None:
    program = ("bash", "-c", f'exec {sys.executable} -m sqlstress "$@" >&- 2>&-', "bash")
    code, _, _ = sqlstress(tmp_path, *DRY, "-c", "1", "-o", "report.json", program=program)
    assert code == 0
    assert (tmp_path / "report.json").exists()


@pytest.mark.fault(
    area="resources",
    injected="the report's folder removed during the run",
    outcome="every case is measured; exit code 4 and a message",
)
def test_a_report_that_can_no_longer_be_saved_stops_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    arguments = (*DRY, "-c", "1,2", "-o", "reports/report.json", "--quiet")
    with Command(tmp_path, *arguments, program=TELLING) as command:
        told = iter(command.process.stdout or ())
        while next(told) != "starting\n":
            pass
        (tmp_path / "reports").rmdir()
        code, output, errors = command.finish()
    assert code == 4
    assert "case 2" in output
    assert re.fullmatch(r"Error: cannot write reports/report.json: .*\n", errors)


# Limits


def limited(hard: int, soft: int) -> tuple[str, ...]:
    command = f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec {sys.executable} -m sqlstress "$@"'
    return ("bash", "-c", command, "bash")


@pytest.mark.fault(
    area="resources",
    injected="too few file descriptors for the files",
    outcome="exit code 4; how many are needed and allowed",
)
@posix
def test_too_few_descriptors_say_what_is_missing(tmp_path: Path) -> None:
    program = limited(hard=512, soft=256)
    code, output, errors = sqlstress(tmp_path, *BRIEF, "-c", "1", "-b", "1000", program=program)
    assert (code, output) == (4, "")
    assert re.match(r"Error: \d{4} open files are needed for each process and 512 are allowed here: ", errors)
    assert len(errors.splitlines()) == 1
    assert left(tmp_path) == []


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: a thousand files are synced there at no cost."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or not os.access(memory, os.W_OK):
        yield tmp_path
        return
    place = memory / f"{tmp_path.name}-{os.getpid()}"
    place.mkdir()
    try:
        yield place
    finally:
        place.rmdir()


@pytest.mark.thorough
@pytest.mark.fault(
    area="resources",
    injected="a soft limit of file descriptors that is too low",
    outcome="it is raised to the hard limit; exit code 0",
)
@posix
def test_a_thousand_files_raise_the_soft_limit(quick_folder: Path) -> None:
    hard = int(subprocess.run(["bash", "-c", "ulimit -Hn"], capture_output=True, check=True).stdout)
    if hard < 8000:
        pytest.skip(f"no more than {hard} files may be open here")
    arguments = ("-c", "1", "-b", "1000", "--key-space", "1000", "--ops", "20", "-o", "csv:/dev/stdout")
    code, output, errors = sqlstress(quick_folder, *arguments, "--quiet", program=limited(hard, 256))
    assert (code, errors) == (0, "")
    assert len(output.splitlines()) == 2


@pytest.mark.thorough
@pytest.mark.fault(
    area="scale",
    injected="64 workers",
    outcome="all of them work; verified",
)
def test_sixty_four_workers_work(tmp_path: Path) -> None:
    arguments = ("-c", "64", "--ops", "20", "--key-space", "500", "--synchronous", "off", "-o", "report.json")
    code, _, errors = sqlstress(tmp_path, *arguments)
    (run,) = saved_report(tmp_path).runs
    assert (code, errors) == (0, "")
    assert [one.transactions for one in run.trials[0].workers] == [20] * 64
    assert run.verdict.status == "ok"
