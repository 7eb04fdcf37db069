"""A server of our own is there for a measurement, and gone with it, however that ends."""

from __future__ import annotations

import os
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
from tests.servers import needs_server

psycopg = pytest.importorskip("psycopg")

from sqlstress.targets.postgres import server  # noqa: E402
from sqlstress.targets.postgres.server import ask_to_end  # noqa: E402

RUN = """
import sys
from pathlib import Path
from sqlstress.engine.folder import RunFolder
from sqlstress.targets.postgres import server
if __name__ == "__main__":
    with RunFolder(Path(sys.argv[1]), keep=False) as folder, server.running(folder.path, 3) as dsn:
        print(folder.path, flush=True)
        sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _server() -> None:
    needs_server()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for that of a socket; as strict as those of tests are."""
    with tempfile.TemporaryDirectory(prefix="s") as name:
        yield Path(name)


def server_in(home: Path) -> psutil.Process:
    """Return the server that runs in a folder of ours."""
    return psutil.Process(int((home / SERVER_FOLDER / "data" / "postmaster.pid").read_text().split("\n")[0]))


def watcher_of(running: psutil.Process) -> psutil.Process:
    return psutil.Process(running.ppid())


def test_it_answers_and_is_gone_when_the_block_ends(short: Path) -> None:
    with RunFolder(short, keep=False) as folder:
        with server.running(folder.path, 7) as dsn, psycopg.connect(dsn) as connection:
            own = server_in(folder.path)
            # A Ctrl-C does not reach it: it has a session of its own.
            assert sys.platform == "win32" or os.getsid(own.pid) != os.getsid(0)
            assert connection.execute("SHOW max_connections").fetchone() == (str(7 + server.SPARE),)
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert gone([own])
    assert list(short.iterdir()) == []


@pytest.mark.thorough
def test_where_a_socket_cannot_be_it_listens_on_this_machine_and_wants_a_password(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LONGEST_SOCKET", 0)
    with RunFolder(short, keep=False) as folder, server.running(folder.path, 3) as dsn:
        with psycopg.connect(dsn) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(psycopg.conninfo.make_conninfo(dsn, password="another one"))
    assert list(short.iterdir()) == []


@pytest.mark.thorough
@pytest.mark.parametrize("also_the_watcher", [False, True])
def test_a_parent_that_is_killed_takes_it_along_and_the_next_start_its_files(
    short: Path, also_the_watcher: bool
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(short)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        folder = Path(os.fsdecode(parent.stdout.readline().rstrip()))
        own = server_in(folder)
        if also_the_watcher:
            watcher_of(own).kill()
        parent.kill()
    if also_the_watcher:
        # Nobody is left to end it: it does so itself when its files are gone, within a minute.
        remove_abandoned(short)
        ask_to_end(own.pid)
    assert gone([own])
    wait_for(lambda: not remove_abandoned(short) and not list(short.glob(f"{PREFIX}*")))
    assert not list(short.glob(f"{PREFIX}*"))


@pytest.mark.thorough
def test_a_watcher_that_is_killed_leaves_it_to_the_parent(short: Path) -> None:
    with RunFolder(short, keep=False) as folder:
        with server.running(folder.path, 3):
            own = server_in(folder.path)
            watcher_of(own).kill()
        assert gone([own])


def test_programs_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PACKAGE", "no_such_package")
    with pytest.raises(EnvironmentFailure, match=r"pip install '\.\[postgres\]'\), or give --dsn"):
        server.programs()


@pytest.mark.thorough
def test_a_server_that_does_not_start_tells_its_last_words(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PORT", "nonsense")
    with (
        pytest.raises(EnvironmentFailure, match=r"did not start: .*nonsense"),
        RunFolder(short, keep=False) as folder,
        server.running(folder.path, 3),
    ):
        pass
    assert list(short.iterdir()) == []


@pytest.mark.thorough
def test_what_it_takes_of_the_processors_is_ours(short: Path) -> None:
    with server.running(short, 2) as dsn, psycopg.connect(dsn) as connection:
        family, own = Family(), psutil.Process()
        before, before_own = family.spent_s(), sum(own.cpu_times()[:2])
        connection.execute("SELECT sum(sqrt(n)) FROM generate_series(1, 2000000) AS n")
        after, after_own = family.spent_s(), sum(own.cpu_times()[:2])
    assert before is not None and after is not None
    assert after - before > 0.1 + (after_own - before_own)
