"""Workers that fail in every way: the others' figures are kept, and the next case is measured."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.engine.processes import Command, gone, saved_report, sqlstress
from tests.faults.commands import SHORT, Held, left, posix
from tests.faults.failing import VARIABLE
from tests.rows import fault, mostly_thorough, thorough

HUNG = fault(
    "workers",
    "a worker stopped (SIGSTOP) at its start, in the window or in the middle of its results",
    "exit 4; ended after the time-out, and named",
)

FAILING = (sys.executable, str(Path(__file__).with_name("failing.py")))
# On Windows a search for the workers is slow; and if the others come late, the trial is run again without a
# kill.
WINDOW = ("--warmup", "1s", "--duration", "2s") if sys.platform == "win32" else ()
ARGUMENTS = ("kv", "-c", "3,1", *SHORT, *WINDOW, "-o", "report.json")
SAID = {
    "MemoryError": "failed: out of memory",
    "RuntimeError": "failed: RuntimeError: injected",
    "OSError": "failed: OSError: injected",
    "BaseException": "failed: BaseException: injected",
    "SIGKILL": "was killed by SIGKILL",
}
KILLED = "ended with exit code" if sys.platform == "win32" else "was killed by SIGKILL"
AT_ONCE_S = 28.0
"""Two seconds less than the wait for a next trial. A process has two seconds to obey and two to be
terminated.
"""
LONGER = ("--duration", "1s")
"""The window is still open when a busy machine has found and struck the workers."""
FAILURES = [
    ("starting", "MemoryError"),
    ("starting", "SIGKILL"),
    ("window", "RuntimeError"),
    ("window", "BaseException"),
    ("reporting", "OSError"),
    ("reporting", "SIGKILL"),
]
"""Every moment with an exception and SIGKILL, which later tests send in the window."""


@fault(
    "workers",
    "an exception, a panic, a MemoryError or SIGKILL in a worker, at each stage",
    "exit 4; its case says who and why, the next case runs",
)
@pytest.mark.parametrize(("moment", "failure"), mostly_thorough(FAILURES, [("window", "RuntimeError")]))
def test_failed_worker_fails_its_case_only_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, failure: str
) -> None:
    if failure == "SIGKILL" and sys.platform == "win32":
        pytest.skip("there is no such signal")
    monkeypatch.setenv(VARIABLE, f"{moment} {failure}")
    begun = time.monotonic()
    code, _, errors = sqlstress(tmp_path, *ARGUMENTS, program=FAILING)
    # The other workers do not wait for a next trial.
    assert time.monotonic() - begun < AT_ONCE_S
    failed, following = saved_report(tmp_path).runs
    assert code == 4
    assert len(errors.splitlines()) == 1
    assert (following.error, following.verdict.status) == (None, "ok")
    if moment == "starting":
        assert f"worker 2 could not start: {SAID[failure].removeprefix('failed: ')}." in errors
        assert failed.trials == ()
    else:
        (trial,) = failed.trials
        assert f"worker 2 {SAID[failure]}; the others' figures are kept." in errors
        assert [worker.error is None for worker in trial.workers] == [True, False, True]
        assert failed.verdict.status == "ok"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.thorough
@fault(
    "workers",
    "all workers killed at once in the window",
    "exit 4; the case has no figures, what was acknowledged is verified, other cases are whole",
)
def test_all_workers_killed_at_once_fail_their_case_only(tmp_path: Path) -> None:
    with Held(tmp_path, "measuring", *ARGUMENTS, *LONGER) as command:
        for worker in command.workers():
            worker.kill()
        code, output, errors = command.finish()
    failed, following = saved_report(tmp_path).runs
    assert code == 4
    assert re.search(r"worker 1 (was killed|ended with) .*, and 2 more\.$", errors)
    assert [worker.transactions for worker in failed.trials[0].workers] == [0, 0, 0]
    assert failed.verdict.status == "ok"
    assert (following.error, following.verdict.status) == (None, "ok")
    assert "Best: 0 " not in output
    assert left(tmp_path) == ["report.json"]


@HUNG
@posix
@pytest.mark.long
@pytest.mark.parametrize(("moment", "fault"), [("starting", "did not get ready"), ("measuring", "hung")])
def test_suspended_worker_is_ended_after_the_time_out(tmp_path: Path, moment: str, fault: str) -> None:
    with Held(tmp_path, moment, *ARGUMENTS, "--busy-timeout", "1s") as command:
        if moment == "starting":
            command.let_go()
            command.until(command.workers, "worker")
        workers = command.workers()
        workers[0].suspend()
        code, _, errors = command.finish()
    failed, following = saved_report(tmp_path).runs
    assert code == 4
    assert re.search(rf"worker \d .*{fault} within the time-out, and was ended", errors)
    assert (moment == "measuring") == bool(failed.trials)
    assert (following.error, following.verdict.status) == (None, "ok")
    assert gone(workers)
    assert left(tmp_path) == ["report.json"]


@fault(
    "workers",
    "a worker stopped in the middle of its results, then SIGINT or SIGTERM to the program",
    "exit 130 within seconds",
)
@posix
@pytest.mark.parametrize("name", [thorough("SIGINT"), thorough("SIGTERM")])
def test_incomplete_results_do_not_block_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(VARIABLE, "reporting SIGSTOP")
    with Command(tmp_path, *ARGUMENTS, program=FAILING) as command:
        workers = command.until(lambda: len(now := command.workers()) == 3 and now, "three workers")
        command.until(lambda: workers[1].status() == psutil.STATUS_STOPPED, "stop of the second")
        os.kill(command.process.pid, signal.Signals[name])
        struck = time.monotonic()
        code, _, errors = command.finish()
        took_s = time.monotonic() - struck
    assert (code, errors) == (130, "Stopped after 0 of 2 cases.\n")
    assert took_s < AT_ONCE_S
    assert gone(workers)
    assert list(tmp_path.iterdir()) == []


@HUNG
@posix
@pytest.mark.long
def test_incomplete_results_are_dropped_after_the_time_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "reporting SIGSTOP")
    code, _, errors = sqlstress(tmp_path, *ARGUMENTS, "--busy-timeout", "1s", program=FAILING)
    failed, following = saved_report(tmp_path).runs
    assert code == 4
    assert "worker 2 hung within the time-out, and was ended; the others' figures are kept." in errors
    assert [worker.error is None for worker in failed.trials[0].workers] == [True, False, True]
    assert (following.error, following.verdict.status) == (None, "ok")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.thorough
@fault(
    "workers", "a worker out of memory (RLIMIT_AS) in the window", "exit 4; it says so, the next case runs"
)
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process is Linux's")
def test_worker_out_of_memory_is_reported(tmp_path: Path) -> None:
    large = ("--value-size", "500000", "--key-space", "10", "--read-ratio", "0", "--synchronous", "off")
    with Held(tmp_path, "connected", *ARGUMENTS, *large) as command:
        if sys.platform == "linux":
            command.workers()[0].rlimit(psutil.RLIMIT_AS, (1 << 20, 1 << 20))
        code, _, errors = command.finish()
    _, following = saved_report(tmp_path).runs
    assert code == 4
    assert len(errors.splitlines()) == 1
    # It may not even notice that the window opens.
    assert re.search(
        r"worker \d failed: (out of memory|SQLITE_NOMEM)|could not start: .*lower --conc", errors
    )
    assert (following.error, following.verdict.status) == (None, "ok")
    assert left(tmp_path) == ["report.json"]


@fault(
    "workers",
    "a worker killed when the window opens",
    "exit 4; the others' figures are kept and verified, the next case runs",
)
def test_killed_worker_fails_its_case_only_and_other_figures_are_kept(tmp_path: Path) -> None:
    # On a single file a worker may starve for the whole window, as it may on a slow disk.
    even = ("--buckets", "20", "--synchronous", "off", "--duration", "500ms")
    with Held(tmp_path, "measuring", *ARGUMENTS, *even) as command:
        command.workers()[1].kill()
        code, output, errors = command.finish()
    report = saved_report(tmp_path)
    killed, following = report.runs
    (trial,) = killed.trials
    dead = [worker for worker in trial.workers if worker.error]
    assert code == 4
    assert [(worker.error or "")[: len(KILLED)] for worker in dead] == [KILLED]
    assert f"worker {dead[0].worker} {dead[0].error}; the others' figures are kept" in errors
    assert f"worker {dead[0].worker} {KILLED}" in re.sub(r"\s+", " ", output)
    assert [worker.transactions > 0 for worker in trial.workers] == [
        worker not in dead for worker in trial.workers
    ]
    assert trial.transactions == sum(worker.transactions for worker in trial.workers)
    assert killed.verdict.status == "ok"
    assert (following.error, following.verdict.status, report.interrupted) == (None, "ok", False)
    assert left(tmp_path) == ["report.json"]


@pytest.mark.thorough
@fault(
    "workers",
    "the process that forks the workers killed when the window opens",
    "exit 4; the workers end too, the case is verified, the next case runs",
)
@posix
def test_workers_end_without_their_fork_server_and_the_next_case_runs(tmp_path: Path) -> None:
    with Held(tmp_path, "measuring", *ARGUMENTS, *LONGER) as command:
        workers = command.workers()
        psutil.Process(workers[0].ppid()).kill()
        assert gone(workers)
        code, _, errors = command.finish()
    failed, following = saved_report(tmp_path).runs
    assert code == 4
    assert re.search(r"worker \d ended with exit code 255 and no result", errors)
    assert (failed.verdict.status, following.error, following.verdict.status) == ("ok", None, "ok")
    assert left(tmp_path) == ["report.json"]


@pytest.mark.thorough
@fault(
    "workers",
    "the checkpointing process killed when the window opens",
    "exit 4; the workers' figures are kept and verified",
)
def test_killed_checkpointer_is_reported_and_figures_are_kept(tmp_path: Path) -> None:
    beside = ("--buckets", "20", "--checkpointer", "restart", "--pinned-reader", *LONGER)
    with Held(tmp_path, "measuring", *ARGUMENTS, "-c", "2", *beside) as command:
        sorted(command.workers(), key=lambda process: process.pid)[2].kill()
        code, output, errors = command.finish()
    (run,) = saved_report(tmp_path).runs
    (trial,) = run.trials
    assert code == 4
    assert run.error == trial.error == f"the checkpointer {KILLED}; the workers' figures are kept"
    assert f"the checkpointer {KILLED}" in re.sub(r"\s+", " ", output)
    assert f"the checkpointer {KILLED}" in errors
    assert all(worker.error is None and worker.transactions > 0 for worker in trial.workers)
    assert (run.verdict.status, left(tmp_path)) == ("ok", ["report.json"])
    assert "WAL size" in {worker.name for worker in trial.series if worker.values}
