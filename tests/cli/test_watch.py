"""The command `sqlstress watch`: real holders, through the real command line."""

import json
import math
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from sqlstress.cli.commands import run
from sqlstress.cli.measure import moment_observer
from sqlstress.experiments.watch import study
from sqlstress.experiments.watch.spec import WRITE
from sqlstress.machine import host
from sqlstress.report import FileSystem
from tests.cli.conftest import Cli
from tests.rows import thorough

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows tells of no lock who holds it")
BEGIN = "import os, sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)\n"
HOLD = "c.execute('BEGIN IMMEDIATE'); print(1, flush=True); time.sleep(60)\n"
# The process measures the time of its lock: from the answer to BEGIN to that to COMMIT.
BY_TURNS = """
held, n, begun = 0, 0, time.perf_counter()
print(1, flush=True)
while not os.path.exists(sys.argv[2]):
    c.execute('BEGIN IMMEDIATE'); since = time.perf_counter()
    c.execute('INSERT INTO t VALUES (1)'); time.sleep((7 + 31 * n % 60) / 1000)
    c.execute('COMMIT'); held += time.perf_counter() - since
    time.sleep((5 + 17 * n % 50) / 1000); n += 1
print(held / (time.perf_counter() - begun), n, flush=True)
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("CREATE TABLE t (a)")
    return path


@contextmanager
def process(
    database: Path, code: str, *words: str, stdin: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", BEGIN + code, str(database), *words]
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True) as found:
        try:
            assert found.stdout is not None and found.stdout.readline()
            yield found
        finally:
            found.kill()


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "sqlstress", "watch", *map(str, words)]


def test_process_with_a_long_write_lock_is_named_and_exits_1(database: Path, cli: Cli) -> None:
    report = database.with_name("watch.json")
    with process(database, HOLD) as holder:
        done = cli("watch", database, "--until-held", "300ms", "-o", report, expected=1)
    assert f"FAILED: process {holder.pid}" in done.text
    found = json.loads(report.read_text(encoding="utf-8"))["watch"]["locks"]
    assert found["processes"][found["held_too_long"]]["pid"] == holder.pid
    assert 0.3 < found["seconds"] < 30


COMPUTES = """
c.execute('BEGIN IMMEDIATE'); print(1, flush=True)
while True:
    sum(range(100_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report written data")
@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(HOLD, "it waits for something else", id="sleeps"),
        thorough(COMPUTES, "compute before BEGIN", id="computes"),
    ],
)
def test_activity_of_a_process_with_a_long_lock_is_named(
    database: Path, cli: Cli, code: str, text: str
) -> None:
    with process(database, code) as holder:
        done = cli("watch", database, "--duration", "1.5s", expected=0)
    assert f"Process {holder.pid}" in done.text and text in done.text
    assert "set every busy timeout" not in done.text


@pytest.mark.thorough
def test_shares_equal_the_holders_own_count_within_the_stated_error(database: Path, cli: Cli) -> None:
    report = database.with_name("watch.json")
    over = database.with_name("over")
    with process(database, BY_TURNS, str(over)) as holder:
        done = cli("watch", database, "--duration", "2.5s", "--quiet", "-o", report)
        over.touch()
        assert holder.stdout is not None
        own, turns = map(float, holder.stdout.readline().split())
    assert (done.code, done.out, done.err) == (0, "", "")
    found = json.loads(report.read_text(encoding="utf-8"))["watch"]["locks"]
    (writer,) = (entry for entry in found["processes"] if entry["pid"] == holder.pid)
    share = writer["locks"][WRITE]["samples"] / found["samples"]
    # The watch sees another part of the time than the holder counts, so allow the error twice, and a turn or
    # two.
    assert abs(share - own) < 2 * 1.96 * math.sqrt(own * (1 - own) / found["samples"]) + 0.05
    assert 0 < found["commits"] <= turns


@pytest.mark.thorough
def test_watch_waits_for_a_process_with_the_database_open(database: Path, cli: Cli) -> None:
    done = cli("watch", database, "--duration", "1.2s", expected=0)
    assert done.out.splitlines()[0].endswith(f"no process has {database} open; waiting")
    assert [path.name for path in database.parent.iterdir()] == ["app.db"]


def test_stopped_watch_keeps_its_results_and_leaves_the_lock(database: Path) -> None:
    report = database.with_name("watch.json")
    with process(database, HOLD) as holder:
        words = command(database, "--duration", "1h", "-o", report)
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
            while not report.exists():
                time.sleep(0.05)
            watching.send_signal(signal.SIGINT)
            out, error = watching.communicate()
        assert watching.returncode == 130
        assert f"process {holder.pid}" in out and "Stopped after" in error
        late = "c.execute('PRAGMA busy_timeout=0'); c.execute('BEGIN IMMEDIATE')\n"
        refused = subprocess.run(
            [sys.executable, "-c", BEGIN + late, str(database)], capture_output=True, text=True, check=False
        )
        assert "database is locked" in refused.stderr


# Forked, so that they share their memory. Half of them read in one transaction, the others write by turns.
CROWD = """
parent = os.getpid()
for number in range(300):
    if os.fork():
        continue
    c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
    if number % 2:
        c.execute('BEGIN'); c.execute('SELECT * FROM t').fetchall()
    while os.getppid() == parent:
        if number % 2 == 0:
            c.execute('BEGIN IMMEDIATE'); c.execute('INSERT INTO t VALUES (1)')
            time.sleep(0.02); c.execute('COMMIT')
        time.sleep(0.5)
    os._exit(0)
print(1, flush=True)
sys.stdin.read()
"""


@pytest.mark.thorough
def test_hundreds_of_processes_are_watched(database: Path, cli: Cli) -> None:
    report = database.with_name("watch.json")
    with process(database, CROWD, "", stdin=subprocess.PIPE) as crowd:
        cli("watch", database, "--duration", "4s", "--quiet", "-o", report, expected=0)
        crowd.communicate("")
    found = json.loads(report.read_text(encoding="utf-8"))["watch"]["locks"]
    # The writers that were seen, and all readers (they pin the WAL) if the system lists them.
    assert len(found["processes"]) + found["others"] > (100 if sys.platform == "linux" else 5)
    assert all(entry["command"] for entry in found["processes"] if not entry["gone"])


def test_file_on_a_network_file_system_is_watched_with_a_warning(
    database: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = FileSystem("nfs4", "server:/home", "rw")
    monkeypatch.setattr(host, "file_system_of", lambda _: there)
    assert run(["watch", str(database), "--duration", "0.2s", "--plain"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "nfs4 is a shared or network file system: a lock that another host holds may not be seen." in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([__file__], "is not an SQLite database"),
        pytest.param([Path(__file__).parent], "is not a file", marks=pytest.mark.thorough),
    ],
)
def test_unwatchable_file_is_a_one_line_error(words: list[str], message: str, cli: Cli) -> None:
    done = cli("watch", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err and done.err.count("\n") == 1


def test_page_replaces_the_last_page_and_is_erased_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with moment_observer(True, plain=False) as shown:
        shown.moment(lambda: "one\ntwo", lambda: "a line")
        shown.moment(lambda: "three", lambda: "a line")
    assert capsys.readouterr().out == "one\ntwo\n\033[2A\033[Jthree\n\033[1A\033[J"
    with moment_observer(True, plain=True) as shown:
        shown.moment(lambda: "page", lambda: "a line")
    assert capsys.readouterr().out == "a line\n"


def test_dumb_terminal_gets_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    with moment_observer(True, plain=False) as shown:
        shown.moment(lambda: "page", lambda: "a line")
    assert capsys.readouterr().out == "a line\n"


# The process drops its locks as it closes the file, and another process then deletes the WAL.
LOSES_ITS_LOCKS = """
import subprocess
c.execute('INSERT INTO t VALUES (1)'); open(sys.argv[1], 'rb').close()
other = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t'); c.close()"
subprocess.run([sys.executable, '-c', other, sys.argv[1]], check=True)
print(1, flush=True)
while True:
    c.execute('INSERT INTO t VALUES (2)'); time.sleep(0.02)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files that were deleted")
def test_writer_into_a_deleted_wal_is_the_first_finding(database: Path, cli: Cli) -> None:
    with process(database, LOSES_ITS_LOCKS) as writer:
        done = cli("watch", database, "--duration", "1s")
    assert done.code == 1
    assert f"FAILED: process {writer.pid}" in done.text and "is writing into a deleted WAL" in done.text
    assert "Nobody was seen" not in done.text and "No process had" not in done.text


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of all processes")
def test_writer_by_another_name_of_the_file_is_a_failure(database: Path, cli: Cli) -> None:
    other = database.with_name("other.db")
    other.hardlink_to(database)
    writes = (
        "print(1, flush=True)\nwhile True:\n    c.execute('INSERT INTO t VALUES (2)'); time.sleep(0.02)\n"
    )
    with process(database, writes), process(other, writes) as stranger:
        done = cli("watch", database, "--duration", "1s")
    assert done.code == 1
    assert f"FAILED: process {stranger.pid}" in done.text and other.name in done.text
    assert "The file has several names (hard links): 2." in done.text


READS = "c.execute('BEGIN'); c.execute('SELECT * FROM t').fetchall(); print(1, flush=True); time.sleep(600)\n"
WRITES = """
c.execute('PRAGMA synchronous=off'); print(1, flush=True)
while True:
    c.execute('INSERT INTO t SELECT randomblob(100000)'); time.sleep(0.001)
"""
# As a replicator does: the checkpoint waits with the write lock, gives up, and starts again after a gap.
RESTARTS = """
c.execute('INSERT INTO t VALUES (1)'); c.execute('PRAGMA busy_timeout=700'); print(1, flush=True)
while True:
    c.execute('PRAGMA wal_checkpoint(RESTART)'); time.sleep(0.02)
"""
# Two connections of the process by turns: each ends its transaction after the other has begun.
OVERLAPS = """
d = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
c.execute('BEGIN'); c.execute('SELECT count(*) FROM t').fetchall(); print(1, flush=True)
while True:
    d.execute('BEGIN'); d.execute('SELECT count(*) FROM t').fetchall(); c.execute('COMMIT')
    time.sleep(0.01); c, d = d, c
"""


@pytest.fixture
def early_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a watch end with a cause of the WAL's size after its second step."""
    monkeypatch.setattr(study, "CAUSE_S", 1.1)


UNCHECKED = "c.execute('PRAGMA wal_autocheckpoint=0')\n" + WRITES
ONE_TRANSACTION = WRITES.replace("print(", "c.execute('PRAGMA cache_size=10'); c.execute('BEGIN'); print(")
EARLIER = """
c.execute('PRAGMA wal_autocheckpoint=0')
c.executemany('INSERT INTO t VALUES (zeroblob(?))', [(9999,)] * 500)
c.execute('PRAGMA wal_checkpoint(RESTART)'); c.execute('INSERT INTO t VALUES (1)')
print(1, flush=True); time.sleep(600)
"""


@pytest.mark.usefixtures("early_cause")
@pytest.mark.parametrize(
    ("codes", "size", "words"),
    [
        pytest.param(
            [READS, WRITES], "5.0 MB", ["Process PID", "cannot be checkpointed"], id="a long reader"
        ),
        thorough(
            [OVERLAPS, WRITES],
            "30 MB",
            ["no sample was without a reader", "process PID"],
            id="overlapping readers",
        ),
        thorough(
            [UNCHECKED],
            "4.0 MB",
            ["Most of them are not checkpointed", "no long reader was seen"],
            id="no checkpoint",
        ),
        thorough(
            [ONE_TRANSACTION], "4.0 MB", ["is writing the rest in one transaction"], id="a large transaction"
        ),
        thorough([EARLIER], "4.0 MB", ["It grew earlier and is reused now"], id="an earlier load"),
    ],
)
def test_large_wal_ends_the_watch_with_its_cause(
    codes: list[str], size: str, words: list[str], database: Path, cli: Cli
) -> None:
    with ExitStack() as stack:
        first, *_ = [stack.enter_context(process(database, code)) for code in codes]
        done = cli("watch", database, "--until-wal", size.replace(" ", ""), expected=1)
    assert f"FAILED: the WAL has reached {size}" in done.text
    assert [word for word in words if word.replace("PID", str(first.pid)) not in done.text] == []


def test_holds_of_a_checkpoint_with_short_gaps_count_as_a_hold(database: Path, cli: Cli) -> None:
    with process(database, READS) as reader, process(database, RESTARTS) as replicator:
        done = cli("watch", database, "--until-held", "1500ms", expected=1)
    assert f"FAILED: process {replicator.pid}" in done.text and "with gaps of up to 100 ms" in done.text
    assert "because its checkpoint waited for a reader: process" in done.text
    assert f"a reader: process {reader.pid}" in done.text


@pytest.mark.skipif(sys.platform != "linux", reason="psutil lists mapped files of Linux and Windows")
def test_sqlite_libraries_of_a_process_are_named(database: Path, cli: Cli) -> None:
    pytest.importorskip("apsw")
    report = database.with_name("watch.json")
    with process(database, "import apsw\n" + HOLD) as holder:
        done = cli("watch", database, "--until-held", "100ms", "-o", report)
    found = json.loads(report.read_text(encoding="utf-8"))["watch"]["locks"]
    libraries = {Path(entry["file"]).parent.name for entry in found["processes"][0]["sqlite"]}
    assert found["processes"][0]["pid"] == holder.pid and "apsw" in libraries
    assert "SQLite: " in done.out
    if len(libraries) > 1:  # else the sqlite3 module contains no library that is a file
        assert "has mapped 2 SQLite libraries" in done.text
