"""A temporary server ends with its measurement, however that ends."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sqlstress.engine.folder import PREFIX, RunFolder, remove_abandoned
from sqlstress.errors import EnvironmentFailure
from sqlstress.machine.foreign_load import Family
from sqlstress.targets.place import SERVER_FOLDER
from tests.engine.processes import ROOT, gone
from tests.experiments.measured import wait_for
from tests.rows import thorough
from tests.servers import needs_server

psycopg = pytest.importorskip("psycopg")

from sqlstress.targets.postgres import dialect, server  # noqa: E402

RUN = """
import sys
from pathlib import Path
from sqlstress.engine.folder import RunFolder
from sqlstress.targets.postgres import server
if __name__ == "__main__":
    with RunFolder(Path(sys.argv[1]), keep=False) as folder, server.running(folder.path, 4) as dsn:
        print(folder.path, flush=True)
        sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _server() -> None:
    needs_server()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder, closed to other users, whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="s") as name:
        yield Path(name)


def server_in(home: Path) -> psutil.Process:
    """Return the server process that runs in this folder."""
    return psutil.Process(int((home / SERVER_FOLDER / "data" / "postmaster.pid").read_text().split("\n")[0]))


def guard_of(running: psutil.Process) -> psutil.Process:
    """Return the process that started a server."""
    return psutil.Process(running.ppid())


def test_server_answers_and_ends_with_the_block(short: Path) -> None:
    with RunFolder(short, keep=False) as folder:
        with server.running(folder.path, 7) as dsn, psycopg.connect(dsn) as connection:
            process = server_in(folder.path)
            # Ctrl-C does not reach it: it has its own session.
            assert sys.platform == "win32" or os.getsid(process.pid) != os.getsid(0)
            assert connection.execute("SHOW max_connections").fetchone() == ("7",)
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert gone([process])
    assert list(short.iterdir()) == []


@pytest.mark.thorough
def test_server_without_a_socket_listens_locally_with_a_password(short: Path) -> None:
    with RunFolder(short, keep=False) as folder:
        deep = folder.path / ("p" * server.MAX_SOCKET_PATH)
        with server.running(deep, 4) as dsn:
            with psycopg.connect(dsn) as connection:
                assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(psycopg.conninfo.make_conninfo(dsn, password="another"))
        shutil.rmtree(deep)
    assert list(short.iterdir()) == []


@pytest.mark.thorough
@pytest.mark.parametrize("kills_guard", [False, thorough(True)])
def test_server_ends_after_its_parent_is_killed_and_its_files_go_later(
    short: Path, kills_guard: bool
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(short)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        folder = Path(os.fsdecode(parent.stdout.readline().rstrip()))
        process = server_in(folder)
        guard = guard_of(process)
        if kills_guard:
            guard.kill()
        parent.kill()
    if not kills_guard:
        assert gone([process, guard])
    wait_for(lambda: not remove_abandoned(short) and not list(short.glob(f"{PREFIX}*")))
    assert not list(short.glob(f"{PREFIX}*"))
    # A server without files ends within a minute.
    assert gone([process], 90)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups that get SIGTERM")
def test_server_ends_after_a_sigterm_to_its_process_group(short: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(short)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as parent:
        assert parent.stdout
        process = server_in(Path(os.fsdecode(parent.stdout.readline().rstrip())))
        guard = guard_of(process)
        if sys.platform != "win32":
            os.killpg(parent.pid, signal.SIGTERM)
    assert gone([process, guard])


@pytest.mark.thorough
def test_killed_guard_is_no_error(short: Path) -> None:
    with RunFolder(short, keep=False) as folder, server.running(folder.path, 4):
        process = server_in(folder.path)
        guard_of(process).kill()
    assert list(short.iterdir()) == []
    assert gone([process], 90)


def test_missing_programs_are_reported_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "PACKAGE", "no_such_package")
    with pytest.raises(EnvironmentFailure, match=r"pip install '\.\[postgres\]'\), or give --dsn"):
        dialect.programs()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("connections", "text"), [(3, "max_connections"), thorough(-1, "outside the valid range")]
)
def test_server_that_does_not_start_reports_its_last_lines(short: Path, connections: int, text: str) -> None:
    with (
        pytest.raises(EnvironmentFailure, match=rf"did not start: .*{text}.*Give --dsn"),
        RunFolder(short, keep=False) as folder,
        server.running(folder.path, connections),
    ):
        pass
    assert list(short.iterdir()) == []


@pytest.mark.thorough
def test_processor_time_of_a_server_is_ours(short: Path) -> None:
    with server.running(short, 4) as dsn, psycopg.connect(dsn) as connection:
        family, process = Family(), psutil.Process()
        before, before_own = family.spent_s(), sum(process.cpu_times()[:2])
        connection.execute("SELECT sum(sqrt(n)) FROM generate_series(1, 2000000) AS n")
        after, after_own = family.spent_s(), sum(process.cpu_times()[:2])
    assert before is not None and after is not None
    assert after - before > 0.1 + (after_own - before_own)
