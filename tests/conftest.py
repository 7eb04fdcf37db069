"""Settings of the whole suite; it must leave no process and no folder behind."""

import gc
import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from sqlstress.engine.folder import MARKER, PREFIX, remove_abandoned
from sqlstress.user_work import interleavings, rehearsal
from tests import drawing
from tests.brief import changes
from tests.fork_servers import fork_servers, shared_fork_servers
from tests.servers import KEPT, our_server, server

__all__ = ["fork_servers", "our_server", "server", "shared_fork_servers"]

GRACE_S = 10.0
NO_SKIP = "SQLSTRESS_TEST_NO_SKIP"
"""Set by .ci/run, which has installed what tests need."""
MAY_SKIP = "needs Linux and root"
WORKERS = 4
"""More than most machines have cores: a third of a test's time is waiting for disks and windows."""
LONGEST = {
    "test_gate_measures_the_package_of_each_branch",
    "test_install_without_a_c_compiler_works_and_names_the_remedy",
    "test_lmdb_is_installed_and_passes_its_tests_and_the_contract",
    "test_tutorial_command_has_the_documented_exit_code_and_output",
    "test_fleets_take_turns_on_a_machine_and_tls_needs_certificates",
    "test_wheel_serves_all_pythons_and_runs_the_native_loop",
}
"""Tests to begin with: at the end, one worker would run them while the others have nothing to do."""
SHORT_SEARCH = 10
"""Divisor of the time limits of the search for the step after which a check fails."""
STRANGER = 64123
"""A user who owns nothing and runs nothing."""

# Without bytecode, each of the thousands of processes would compile the package again, and each pytest
# worker would compile the tests: a fifth of the processor time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Few users set it, and it hides that Python cannot write a buffer when it ends.
os.environ.pop("PYTHONUNBUFFERED", None)

# Collected tests stay to the end, so the garbage collector need not visit them.
gc.disable()
drawing.register()

# A suite in the background of a shell starts with SIGINT and SIGHUP ignored. Its child processes would
# inherit that, and tests could not stop them with these signals.
for name, handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    number = getattr(signal, name, None)
    if number is not None and signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run these tests in several processes. Not set by addopts: examples also run without pytest-xdist."""
    in_worker = hasattr(config, "workerinput")
    if in_worker or not config.pluginmanager.hasplugin("xdist"):
        return
    if config.option.numprocesses is None:
        config.option.numprocesses = WORKERS
    if config.option.dist == "no":
        config.option.dist = "worksteal"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import tests in a different order in each worker, so that each compiles a part of a fresh checkout."""
    worker, root = getattr(session.config, "workerinput", None), session.config.rootpath
    if not worker or session.config.args != session.config.getini("testpaths"):
        return
    files = [path.relative_to(root) for path in sorted((root / "tests").rglob("test_*.py"))]
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in files[first:] + files[:first]:
        # Collection imports a module again if it fails here, and reports the error.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a skipped test fail if NO_SKIP is set, because nothing that it needs may be missing."""
    report = yield
    if report.skipped and os.environ.get(NO_SKIP) and sys.platform == "linux":
        *_, reason = report.longrepr if isinstance(report.longrepr, tuple) else (str(report.longrepr),)
        if MAY_SKIP not in reason:
            report.outcome = "failed"
            report.longrepr = f"{reason} ({NO_SKIP} is set)"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first, and mark rows as `long` that are thorough in two tables.

    CI runs each of those rows with an everyday row of the other table.
    """
    items.sort(key=lambda item: getattr(item, "originalname", item.name) not in LONGEST)
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec and [mark.name for mark in callspec.marks].count("thorough") > 1:
            item.add_marker("long")


def pytest_collection_finish() -> None:
    """Exclude the collected tests, which stay to the end, from garbage collection, and collect rarely.

    By default a tenth of the processor time of tests that show reports is garbage collection.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail at the end of the session if a test has left a process or one of our folders."""
    around = (Path(tempfile.gettempdir()), Path.cwd())
    for place in around:
        remove_abandoned(place)
    yield
    _, alive = psutil.wait_procs(own_processes(), timeout=GRACE_S)
    folders = [marker.parent for marker in tmp_path_factory.getbasetemp().rglob(MARKER)]
    # Other sessions may measure there too, so only folders without a live owner count.
    folders += [folder for place in around for folder in remove_abandoned(place)]
    assert not alive, f"processes left: {[process.cmdline() for process in alive]}"
    assert not folders, f"folders left: {[str(folder) for folder in folders]}"


def own_processes() -> list[psutil.Process]:
    """Return our descendants, except multiprocessing's and servers' processes, which live as long as ours."""
    children = [child for child in psutil.Process().children() if child.pid not in KEPT]
    return [
        process
        for child in children
        for process in (child, *descendants(child))
        if not any("resource_tracker" in word for word in command_of(process))
    ]


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """Return a process's descendants; empty if it has ended."""
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def command_of(process: psutil.Process) -> list[str]:
    """Return a process's command line; empty if it has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture
def brief_runs(shared_fork_servers: None) -> Iterator[None]:
    """Apply tests.brief, share fork servers, and rehearse transactions as often as in a slow rehearsal."""
    with pytest.MonkeyPatch.context() as patch:
        for names, name, value in changes():
            patch.setitem(names, name, value)
        patch.setattr(rehearsal, "MAX_ROUNDS", rehearsal.MIN_ROUNDS)
        for limit in ("ALONE_S", "TURNS_S", "PAUSES_S", "CONFIRM_S", "CONTROL_S", "LAST_S"):
            patch.setattr(interleavings, limit, getattr(interleavings, limit) / SHORT_SEARCH)
        yield


@pytest.fixture
def restricted_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which permissions count: root becomes another user during the test."""
    if sys.platform == "win32":
        pytest.skip("folders have no such permission there")
    if os.geteuid() != 0:
        yield tmp_path
        return
    if sys.platform != "linux":
        pytest.skip("nothing is forbidden to root, who can't be another user for a while there")
    with tempfile.TemporaryDirectory() as name:  # pytest's folders are closed to other users
        os.chown(name, STRANGER, STRANGER)
        os.setresgid(STRANGER, STRANGER, 0)
        os.setresuid(STRANGER, STRANGER, 0)
        try:
            yield Path(name)
        finally:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)


@pytest.fixture
def folders_in(tmp_path: Path) -> Iterator[Path]:
    """A folder for tests that leave our folders on purpose; those are cleared afterwards."""
    yield tmp_path
    for marker in tmp_path.rglob(f"{PREFIX}*/{MARKER}"):
        marker.unlink()
