"""Commands as a user runs them: real programs on a copy of a real database, whose original is unchanged."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from sqlstress.analysis.lock_samples import share_error
from sqlstress.engine.folder import remove_abandoned
from sqlstress.experiments.exec import MOMENTS, SLEEPING
from sqlstress.experiments.exec.work import marked_unread
from sqlstress.experiments.exec.worker import FAILED_ALIKE, TRIAL
from sqlstress.report.results import Sighting
from tests.cli.conftest import Cli, Said, assert_refused, saved
from tests.pages import ROOT
from tests.rows import fault, thorough

PYTHON = (sys.executable, "-S", "-E", "-c")
ADD = """
import os, sqlite3, sys
with sqlite3.connect(os.environ["SQLSTRESS_DATABASE"]) as db:
    assert os.path.samefile(os.environ["SQLSTRESS_DATABASE"], sys.argv[3])
    db.execute("INSERT INTO log (number, worker) VALUES (?, ?)", sys.argv[1:3])
"""
SOME = ("--alone", "--ops", "2", "--repeat", "1")
"""Enough commands, even if each is slow to start."""
ADDING = (*PYTHON, ADD, "{n}", "{worker}", "{db}")
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists locks by descriptor")
posix = pytest.mark.skipif(sys.platform == "win32", reason="it uses a POSIX shell")


def exec_(cli: Cli, *words: str, options: tuple[str, ...] = ("--alone",)) -> Said:
    window = () if "--ops" in options else ("--duration", "300ms", "--warmup", "200ms", "--repeat", "1")
    # With all findings, because noise decides which three are shown first.
    return cli("exec", *window, "--details", "-c", "2", "-o", "report.json", *options, "--", *words)


def answers(topic: str) -> list[Sighting]:
    (run,) = saved().runs
    return [sighting for trial in run.trials for sighting in trial.sightings if sighting.topic == topic]


def database(name: str) -> Path:
    with closing(sqlite3.connect(name)) as connection, connection:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("CREATE TABLE log (number INTEGER, worker INTEGER)")
    return Path(name)


def marked() -> list[psutil.Process]:
    """Return the running commands of this test; those of other tests are not children of this process."""
    return [
        process for process in psutil.Process().children(recursive=True) if TRIAL in environment_of(process)
    ]


def environment_of(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def test_commands_work_on_a_copy_each_with_its_own_number(cli: Cli) -> None:
    original = database("app.db")
    before = original.read_bytes(), original.stat().st_mtime_ns
    Path("checks.sql").write_text(
        "-- numbers\nSELECT number FROM log GROUP BY number HAVING count(*) > 1;\n"
        "-- workers\nSELECT worker FROM log WHERE worker NOT IN (1, 2);\n"
    )
    data = ("--database", "app.db", "--check", "checks.sql", "--keep", "--repeat", "1")
    said = exec_(cli, *ADDING, options=(*data, "--ops", "5"))
    assert (said.code, said.err) == (0, ""), said
    assert (original.read_bytes(), original.stat().st_mtime_ns) == before
    assert [path.name for path in Path().glob("app.db*")] == ["app.db"]
    command, nothing = saved().runs
    assert {run.verdict.status for run in (command, nothing)} == {"ok"}
    assert [run.trials[0].transactions for run in (command, nothing)] == [10, 10]
    assert nothing.case.spec.command == ()
    (kept,) = Path().glob("sqlstress-*/case-1-*/trial/kv.db")
    with closing(sqlite3.connect(kept)) as connection:
        numbers = connection.execute("SELECT number, worker FROM log ORDER BY number").fetchall()
    assert numbers == [(number, 2 - number % 2) for number in range(1, 11)]
    assert "empty command" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_exit_codes_and_messages_are_counted_and_too_many_of_them_exit_1(cli: Cli) -> None:
    code = (
        "import os, sys; print('no', os.getpid(), 'in /tmp/%d' % os.getpid(), file=sys.stderr); sys.exit(3)"
    )
    said = exec_(cli, *PYTHON, code, options=SOME)
    assert said.code == 1
    assert "the commands did not exit with 0, or took longer than --timeout" in said.err
    (codes,), (messages,) = answers("exit code"), answers("standard error")
    assert (codes.what, messages.what) == ("3", "no N in PATH")
    assert codes.count == messages.count > 0
    assert messages.example.startswith("no ") and "/tmp/" in messages.example
    assert f"did not exit with 0. Exit codes, with their counts: 3 ({codes.count})" in said.text
    assert f'"{messages.example}" ({codes.count})' in said.text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGBUS")
def test_command_killed_by_sigbus_gets_cause_and_cure(cli: Cli) -> None:
    said = exec_(cli, *PYTHON, "import os, signal; os.kill(os.getpid(), signal.SIGBUS)", options=SOME)
    assert "Exit codes, with their counts: SIGBUS (" in said.text
    assert "SIGBUS: The -shm file was truncated" in said.text and "Use one SQLite library" in said.text


# The program closes the file by other means, which drops its locks; another process then deletes the WAL.
LOSES_ITS_LOCKS = """
import sqlite3, subprocess, sys, time
c = sqlite3.connect(sys.argv[1], 30, isolation_level=None)
c.execute('PRAGMA journal_mode=wal'); c.execute('CREATE TABLE IF NOT EXISTS t (a)')
open(sys.argv[1], 'rb').close()
other = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t'); c.close()"
subprocess.run([sys.executable, '-c', other, sys.argv[1]], check=True)
while True:
    c.execute('INSERT INTO t VALUES (2)'); time.sleep(0.02)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files that were deleted")
def test_command_with_a_deleted_wal_is_a_finding(cli: Cli) -> None:
    options = ("--alone", "-c", "1", "--ops", "1", "--repeat", "1", "--timeout", "4s")
    said = exec_(cli, *PYTHON, LOSES_ITS_LOCKS, "{db}", options=options)
    assert "Deleted while 1 process had it open: the WAL." in said.text
    assert said.code == 1 and "1 process wrote into a deleted WAL" in said.err


LOCKS_A_FILE = """
import fcntl, os, sys, time
file = open(sys.argv[1] + sys.argv[3], "w")
fcntl.flock(file, fcntl.LOCK_EX)
if sys.argv[2] == "delete" and os.path.exists(file.name):  # The other process may have deleted it.
    os.remove(file.name)
time.sleep(0.7)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files that were deleted")
@pytest.mark.parametrize(
    ("action", "suffix"), [("delete", ".lock"), thorough("keep", ".lock"), thorough("delete", ".copy-shm")]
)
def test_deleted_lock_file_is_a_finding_and_sleep_is_no_start(cli: Cli, action: str, suffix: str) -> None:
    options = ("--alone", "-c", "2", "--ops", "1", "--repeat", "1")
    said = exec_(cli, *PYTHON, LOCKS_A_FILE, "{db}", action, suffix, options=options)
    assert said.code == 0
    assert ("Never delete, move or replace" in said.text) == ((action, suffix) == ("delete", ".lock"))
    samples = {sample.what: sample.count for sample in answers(MOMENTS)}
    assert samples[SLEEPING] > 10


REMOVES_LEFTOVERS = """
import contextlib, os, sqlite3, sys, time
for suffix in ("-wal", "-shm"):
    with contextlib.suppress(FileNotFoundError):
        os.remove(sys.argv[1] + suffix)
db = sqlite3.connect(sys.argv[1], timeout=30)
for _ in range(4):
    with contextlib.suppress(sqlite3.Error), db:
        db.execute("INSERT INTO log VALUES (1, 1)")
    time.sleep(0.03)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files that were deleted")
def test_command_that_deletes_the_wal_is_named_and_its_commits_are_lost(cli: Cli) -> None:
    Path("schema.sql").write_text("CREATE TABLE log (number INTEGER, worker INTEGER);", encoding="utf-8")
    options = ("--alone", "--ops", "10", "--repeat", "1", "--max-failed", "100%", "--setup", "schema.sql")
    said = exec_(cli, *PYTHON, REMOVES_LEFTOVERS, "{db}", options=options)
    assert "SQLite did not do that, because" in said.text
    assert "the command, a script or other code deletes" in said.text
    assert "Never delete or move -wal or -shm" in said.text and "are lost" in said.text
    assert said.code == 1 and "wrote into a deleted WAL" in said.err


COPIES = """
sqlite3 -cmd ".timeout 10000" "$1" "INSERT INTO log VALUES ($2, 1)" || exit 1
sqlite3 -cmd ".timeout 10000" "$1" "SELECT count(*) FROM log WHERE number + 0 > -1; SELECT 1" > answer.$2
{copy}
"""


@only_linux
@pytest.mark.parametrize(
    ("copy", "found"),
    [
        pytest.param('cp "$1" copy.$2', True, id="cp"),
        thorough('sqlite3 "$1" "VACUUM INTO \'copy.$2\'"; cp copy.$2 other.$2', False, id="VACUUM INTO"),
        thorough('sqlite3 -cmd ".timeout 10000" "$1" ".backup copy.$2"', False, id=".backup"),
    ],
)
def test_program_that_copies_the_database_in_use_is_named(cli: Cli, copy: str, *, found: bool) -> None:
    Path("work.sh").write_text(COPIES.format(copy=copy), encoding="utf-8")
    Path("schema.sql").write_text("CREATE TABLE log (number INTEGER, worker INTEGER);", encoding="utf-8")
    options = ("--alone", "--ops", "60", "--repeat", "1", "--max-failed", "100%", "--setup", "schema.sql")
    said = exec_(cli, "sh", "work.sh", "{db}", "{n}", options=options)
    assert ("cp (work.sh:4) copied kv.db while it was in use." in said.text) == found
    assert ("copied" in said.text) == found


ONE_AFTER_ANOTHER = """
exec 9> lock
flock 9
sqlite3 "$1" "INSERT INTO log VALUES ($2, 1)" || exit 1
cp "$1" copy.$2
"""


@only_linux
@pytest.mark.parametrize("processes", [thorough("1"), "2"])
def test_copy_of_a_database_that_no_program_uses_is_right(cli: Cli, processes: str) -> None:
    Path("work.sh").write_text(ONE_AFTER_ANOTHER, encoding="utf-8")
    Path("schema.sql").write_text("CREATE TABLE log (number INTEGER, worker INTEGER);", encoding="utf-8")
    options = ("--alone", "-c", processes, "--ops", "30", "--repeat", "1", "--setup", "schema.sql")
    said = exec_(cli, "sh", "work.sh", "{db}", "{n}", options=options)
    assert said.code == 0 and "copied" not in said.text


COMPACTS = """
if [ $2 = 20 ]; then
    sqlite3 -cmd ".timeout 10000" "$1" "VACUUM INTO '$1.compact'" && mv "$1.compact" "$1"
    exit
fi
sqlite3 -cmd ".timeout 10000" "$1" "INSERT INTO log VALUES ($2, 1)"
"""


@posix
def test_program_that_replaces_the_database_is_named_with_its_cure(cli: Cli) -> None:
    Path("work.sh").write_text(COMPACTS, encoding="utf-8")
    Path("schema.sql").write_text("CREATE TABLE log (number INTEGER, worker INTEGER);", encoding="utf-8")
    options = ("--alone", "--ops", "40", "--repeat", "1", "--max-failed", "100%", "--setup", "schema.sql")
    said = exec_(cli, "sh", "work.sh", "{db}", "{n}", options=options)
    assert "mv (work.sh:3) moved, replaced or deleted kv.db while it was in use." in said.text
    assert "Use VACUUM to compact a file in use." in said.text
    assert "lock file" not in said.text and "Check the owner" not in said.text


NEXT_NUMBER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=30)
number = db.execute("SELECT coalesce(max(number), 0) FROM invoice").fetchone()[0] + 1
time.sleep(0.1)
with db:
    db.execute("INSERT INTO invoice VALUES (?)", (number,))
"""


def test_key_that_two_commands_insert_has_its_cause(cli: Cli) -> None:
    Path("schema.sql").write_text("CREATE TABLE invoice (number INTEGER PRIMARY KEY);", encoding="utf-8")
    options = ("--alone", "--ops", "4", "--repeat", "1", "--max-failed", "100%", "--setup", "schema.sql")
    said = exec_(cli, *PYTHON, NEXT_NUMBER, "{db}", options=options)
    assert 'printed "UNIQUE constraint failed: invoice.number" ' in said.text
    assert "If one process alone (-c 1) does not fail" in said.text
    assert "BEGIN IMMEDIATE before the SELECT" in said.text
    said = exec_(cli, *PYTHON, NEXT_NUMBER, "{db}", options=(*options, "-c", "1,2"))
    assert "With one process it did not fail: two commands had looked for the row" in said.text
    said = exec_(cli, *PYTHON, NEXT_NUMBER.replace("+ 1", ""), "{db}", options=(*options, "-c", "1,2"))
    assert "It also fails with one process, so it is no race" in said.text


COUNTS = """
import sqlite3, sys, time
db = sqlite3.connect(f"file:{sys.argv[1]}?%s", uri=True, timeout=30, isolation_level=None)
db.execute("BEGIN IMMEDIATE")
db.execute("INSERT INTO log VALUES (1, 1)")
time.sleep(0.2)
db.execute("COMMIT")
"""


def counting(cli: Cli, *words: str, mode: str, ops: int = 3) -> str:
    """Return the output for a program that writes long transactions."""
    Path("schema.sql").write_text("CREATE TABLE log (number INTEGER, worker INTEGER);", encoding="utf-8")
    options = ("--ops", str(ops), "--repeat", "1", "--max-failed", "99%", "--setup", "schema.sql")
    said = exec_(cli, *words, options=("--alone", *options, "--journal-mode", mode))
    return " ".join(f"{said.out} {said.err}".split())


def test_program_that_takes_no_locks_is_named(cli: Cli) -> None:
    Path("count.py").write_text(COUNTS % "nolock=1", encoding="utf-8")
    text = counting(cli, sys.executable, "count.py", "{db}", mode="wal", ops=FAILED_ALIKE)
    assert "count.py:3 (nolock=1) takes no locks" in text
    text = counting(cli, sys.executable, "count.py", "{db}", mode="delete")
    assert "count.py:3 (nolock=1) opens the database without SQLite's locks" in text


@only_linux
@pytest.mark.parametrize("vfs", [thorough("unix"), "unix-none", thorough("unix-dotfile")])
def test_writer_without_locks_is_seen_whatever_its_text_is(cli: Cli, vfs: str) -> None:
    Path("count.py").write_text(COUNTS % "vfs={sys.argv[2][::-1]}", encoding="utf-8")
    text = counting(cli, sys.executable, "count.py", "{db}", vfs[::-1], mode="delete")
    assert "commands per s: " in text
    assert ("wrote to kv.db without any of SQLite's locks" in text) == (vfs == "unix-none")


HELD = """
import sqlite3, sys
holder = sqlite3.connect(sys.argv[1], isolation_level=None)
holder.execute("BEGIN IMMEDIATE")
other = sqlite3.connect(sys.argv[1], timeout=0)
other.execute("PRAGMA journal_mode=WAL")
"""


def test_cause_of_a_lock_error_follows_from_the_failed_line(cli: Cli) -> None:
    Path("held.py").write_text(HELD, encoding="utf-8")
    Path("schema.sql").write_text("CREATE TABLE log (number INTEGER);", encoding="utf-8")
    options = ("--alone", "-c", "2", "--ops", "2", "--repeat", "1", "--journal-mode", "delete")
    said = exec_(cli, sys.executable, "held.py", "{db}", options=(*options, "--setup", "schema.sql"))
    assert 'at other.execute("PRAGMA journal_mode=WAL"). Switching the journal mode needs' in said.text


ADDS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], 30, isolation_level=None)
{before}
for line in sys.stdin:
    {first}
    db.execute("INSERT INTO log VALUES (?, 1)", (line,))
    print("ok", flush=True)
"""
READS_HEADER = "open(sys.argv[1], 'rb').read(16)"
SECOND_LIBRARY = """
import apsw
other = apsw.Connection(sys.argv[1])
other.execute("SELECT * FROM log").fetchall()
"""
OPENS_ANEW = """db.close(); db = sqlite3.connect(sys.argv[1], 30, isolation_level=None)"""
FORKS = """
import os, time
list(db.execute("SELECT * FROM log"))
if not os.fork():
    time.sleep(60)
"""


def lock_findings(cli: Cli, *, before: str = "", first: str = "pass", mode: str = "wal") -> str:
    """Return the findings on a program that adds a row for each line, with additional code."""
    Path("schema.sql").write_text("CREATE TABLE log (number INTEGER, worker INTEGER);")
    Path("add.py").write_text(ADDS.format(before=before, first=first), encoding="utf-8")
    options = ("--lines", "-c", "1", "--setup", "schema.sql", "--duration", "500ms", "--repeat", "1")
    said = cli("exec", *options, "--journal-mode", mode, "--details", "--", sys.executable, "add.py", "{db}")
    assert said.code == 0, said
    return said.text


@only_linux
def test_program_that_closes_the_file_by_other_means_is_a_finding(cli: Cli) -> None:
    text = lock_findings(cli, first=READS_HEADER)
    assert "1 process had kv.db open without any of SQLite's locks. Other code of the process" in text


@only_linux
@pytest.mark.parametrize("mode", ["wal", thorough("delete")])
def test_two_libraries_on_one_file_are_named_with_their_paths(cli: Cli, mode: str) -> None:
    apsw = pytest.importorskip("apsw")
    if not apsw.using_amalgamation:
        pytest.skip("this apsw uses the SQLite of Python")
    text = lock_findings(cli, before=SECOND_LIBRARY, mode=mode)
    assert ("Two SQLite libraries of one process" in text) == (mode == "wal")
    assert "without any of SQLite's locks" not in text
    assert ("If it uses both" in text) == (mode == "delete")
    paths = text.replace(" ", "")  # A long path is wrapped.
    assert apsw.__file__ in paths and "and/" in paths


@only_linux
@pytest.mark.parametrize(
    ("before", "first"),
    [
        thorough("", "pass", id="one connection"),
        thorough("", OPENS_ANEW, id="a connection per line"),
        thorough(FORKS, "pass", id="a forked process"),
        pytest.param(
            "other = sqlite3.connect(sys.argv[1])",
            "list(other.execute('SELECT 1 FROM log LIMIT 1'))",
            id="two connections",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_right_program_has_no_finding_on_lost_locks(cli: Cli, before: str, first: str, mode: str) -> None:
    text = lock_findings(cli, before=before, first=first, mode=mode)
    assert "SQLite's locks" not in text and "SQLite libraries" not in text


def test_check_broken_under_load_exits_1_with_its_rows(cli: Cli) -> None:
    database("app.db")
    Path("checks.sql").write_text("-- none\nSELECT number FROM log LIMIT 1;\n")
    said = exec_(cli, *ADDING, options=(*SOME, "--database", "app.db", "--check", "checks.sql"))
    assert said.code == 1
    assert "none: (" in said.err


def test_commands_that_make_tables_of_their_own_are_measured(cli: Cli) -> None:
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 30).execute('CREATE TABLE IF NOT EXISTS t (x)')"
    said = exec_(cli, *PYTHON, code, "{db}", options=SOME)
    assert (said.code, said.err) == (0, "")


def test_command_in_a_single_word_is_refused_with_a_remedy(cli: Cli) -> None:
    error = assert_refused(exec_(cli, "./tool add 1"))
    assert "no such program: './tool add 1'. Write its arguments as separate words." in error
    assert list(Path().iterdir()) == []


@pytest.mark.thorough
def test_window_without_completed_command_is_an_error(cli: Cli) -> None:
    said = exec_(cli, *PYTHON, "import time; time.sleep(1)")
    assert said.code == 4
    assert "no command ended within the window of 300ms, in 3 trials: give a longer --duration" in said.err


@posix
@pytest.mark.thorough
def test_command_that_is_too_slow_fails_and_is_reported(cli: Cli) -> None:
    said = exec_(cli, "sh", "-c", "sleep 1000", options=(*SOME, "--timeout", "100ms"))
    assert said.code == 1
    assert answers("exit code") == []
    # Its child may end a moment later, and be counted as left behind.
    counts = {sighting.what: sighting.count for sighting in answers("ended")}
    assert counts["--timeout"] > 1
    assert "took longer than 0.1 s; they were ended" in said.text


@pytest.mark.thorough
@posix
def test_process_outside_of_its_group_is_ended_after_the_trial(cli: Cli) -> None:
    code = (
        "import os, time\nours, theirs = os.pipe()\n"
        "if os.fork() == 0:\n    os.setsid()\n    os.close(theirs)\n    time.sleep(1000)\n"
        "os.close(theirs)\nos.read(ours, 1)"
    )
    said = exec_(cli, *PYTHON, code, options=SOME)
    assert said.code == 0, said
    assert [(sighting.what, sighting.count) for sighting in answers("ended")] == [("out of reach", 4)]
    assert "no worker could reach any more (it was killed, or they left its group) (4 in all)" in " ".join(
        said.out.split()
    )


@pytest.mark.thorough
@posix
def test_endless_output_of_a_command_takes_no_memory_and_no_disk(cli: Cli) -> None:
    flood = "while :; do echo 'no room 1' >&2; echo out; done"
    said = exec_(
        cli, "sh", "-c", flood, options=("--alone", "--timeout", "2s", "--ops", "1", "--repeat", "1")
    )
    assert said.code == 1
    (run,) = saved().runs
    assert all((worker.peak_memory_bytes or 0) < 100 << 20 for worker in run.trials[0].workers)
    (messages,) = answers("standard error")
    assert messages.what == "no room N"


@pytest.mark.thorough
def test_plan_and_python_measure_commands(cli: Cli) -> None:
    Path("plan.toml").write_text(
        f"seed = 1\n[[case]]\nworkload = 'exec'\nrepeat = 1\nconcurrency = 2\nops = 3\nalone = true\n"
        f"command = {json.dumps([*PYTHON, 'pass'])}\n"
    )
    assert cli("run", "plan.toml").code == 0
    import sqlstress

    measured = sqlstress.measure(
        "exec", command=[*PYTHON, "pass"], concurrency=2, ops=3, repeat=1, alone=True
    )
    assert measured.ok, measured.problems
    assert [figure.label for figure in measured.figures] == ["exec, 2 processes"]


@pytest.mark.thorough
@posix
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT", "SIGTERM"])
def test_stopped_program_leaves_no_command_running(tmp_path: Path, name: str) -> None:
    words = ("exec", "--alone", "--duration", "60s", "-c", "3", "--timeout", "60s", "--", "sleep", "1000")
    program = subprocess.Popen(
        [sys.executable, "-m", "sqlstress", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while len(commands := marked()) < 3 and time.monotonic() < until:
            time.sleep(0.05)
        assert len(commands) == 3
        program.send_signal(signal.Signals[name])
        program.wait(60)
        _, alive = psutil.wait_procs(commands, 10)
        assert alive == []
        if name != "SIGKILL":
            assert program.returncode == 130
            assert list(tmp_path.iterdir()) == []
    finally:
        program.kill()
        program.wait()
        remove_abandoned(tmp_path)


def test_always_failing_command_ends_before_the_window(cli: Cli) -> None:
    wrong = (*PYTHON, "import sys; sys.exit('near INSRT: syntax error')")
    begun = time.monotonic()
    said = exec_(cli, *wrong, options=("--alone", "--duration", "60s", "--repeat", "1"))
    assert said.code == 4 and time.monotonic() - begun < 60
    assert (
        "the first 10 commands failed in the same way, with exit code 1: near INSRT: syntax error" in said.err
    )
    assert "--max-failed 100%" in said.err


@pytest.mark.thorough
def test_program_with_only_failed_lines_ends_with_its_worker(cli: Cli) -> None:
    fails = (
        "import sys, time\nfor line in sys.stdin: print('error no such table: t', flush=True)\ntime.sleep(60)"
    )
    said = exec_(cli, *PYTHON, fails, options=("--alone", "--lines", "--duration", "60s", "--repeat", "1"))
    assert "the first 10 lines failed in the same way: no such table: t" in said.err and said.code == 4
    assert "no worker could reach" not in said.out


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("import sys; sys.exit('database is locked')", ()),
        thorough("import sys; sys.exit('it is meant to be')", ("--max-failed", "100%")),
        thorough("import sys; sys.exit(int(sys.argv[1]) % 2)", ()),
    ],
)
def test_load_continues_after_expected_or_mixed_failures(
    cli: Cli, program: str, options: tuple[str, ...]
) -> None:
    said = exec_(cli, *PYTHON, program, "{n}", options=("--alone", "--ops", "30", "--repeat", "1", *options))
    (run,) = saved().runs
    assert run.trials and run.trials[0].error is None
    # Causes appear only if a command met a lock. Which are possible depends on the time of the commands.
    assert ("The commands printed SQLITE_BUSY" in said.text) == ("locked" in program)


HOLD = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
while not db.in_transaction:
    before = time.perf_counter()
    try:
        db.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        time.sleep(0.001)
begun = time.perf_counter()
db.execute("INSERT INTO log VALUES (?, 1)", sys.argv[2:3])
time.sleep(0.2)
ends = time.perf_counter()
db.execute("COMMIT")
with open(sys.argv[3], "a") as file:
    print(ends - begun, time.perf_counter() - before, file=file)
"""


@posix
@pytest.mark.thorough
def test_write_lock_is_reported_by_program_within_the_stated_error(cli: Cli) -> None:
    database("app.db")
    Path("hold.py").write_text(HOLD, encoding="utf-8")
    words = (sys.executable, "-S", "-E", "hold.py", "{db}", "{n}", str(Path("own").absolute()))
    said = exec_(
        cli, *words, options=("--alone", "--where", "--ops", "3", "--repeat", "1", "--database", "app.db")
    )
    assert (said.code, said.err) == (0, ""), said
    ((trial,),) = (run.trials for run in saved().runs)
    assert trial.write_lock
    (holder,) = (candidate for candidate in trial.write_lock.holders if "hold.py" in candidate.program)
    assert holder.program.endswith("-S -E hold.py kv.db N own")
    lines = Path("own").read_text(encoding="ascii").splitlines()
    least, most = zip(*(map(float, line.split()) for line in lines), strict=True)
    assert 0 < holder.processes <= len(least) == 6
    # A hold that was sampled lies between the bounds that the samples give.
    assert holder.held.longest_s <= max(most) and min(least) <= holder.held.most_s
    share, truth = holder.held.samples / trial.write_lock.samples, sum(least) / trial.seconds
    assert abs(share - truth) < 2 * share_error(trial.write_lock.samples) + 0.05
    assert "Who held the write lock" in said.out and "hold.py kv.db N own" in said.out


@fault(
    "input",
    "a command that writes into the original of --database",
    "exit 4 at the first change; no later case begins",
)
def test_command_that_writes_into_the_original_is_stopped(cli: Cli) -> None:
    with closing(sqlite3.connect("app.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.commit()
    Path("stray.py").write_text(
        "import sqlite3\nc = sqlite3.connect('app.db', timeout=9)\n"
        "c.execute('INSERT INTO t VALUES (1)')\nc.commit()\n"
    )
    words = ("--database=app.db", "--alone", "-c1,2", "--repeat=2", "--duration=60s")
    said = cli("exec", *words, "--", sys.executable, "stray.py")
    assert (said.code, len(said.lines)) == (4, 1)
    assert "uses the original" in said.err and "{db}" in said.err
    with closing(sqlite3.connect("app.db")) as connection:
        ((rows,),) = connection.execute("SELECT count(*) FROM t")
    # Starting Python takes longer than the time between two checks of the original.
    assert 1 <= rows < 100


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of processes")
def test_copy_that_no_command_opened_is_not_reported_as_measured(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlstress.experiments.exec.work.LOOKS_ENOUGH", 5)
    monkeypatch.setattr("sqlstress.experiments.exec.work.marked_unread", lambda _: None)
    with closing(sqlite3.connect("app.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.commit()
    words = ("--database=app.db", "--alone", "-c1", "--repeat=1", "--ops=2")
    said = cli("exec", *words, "--", sys.executable, "-c", "import time; time.sleep(0.3)")
    assert "a copy of app.db, which no command used" in said.text
    assert "No command opened the copy of app.db" in said.text
    used = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM t'); "
        "time.sleep(0.3)"
    )
    said = cli("exec", *words, "--", sys.executable, "-c", used, "{db}")
    assert "No command opened" not in said.text


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="Windows rarely notes that a file was read")
def test_single_command_that_never_opened_the_copy_is_reported(cli: Cli, tmp_path: Path) -> None:
    (probe := tmp_path / "probe").write_bytes(b"1")
    if marked_unread(probe) is None:
        pytest.skip("this file system does not note that a file was read")
    with closing(sqlite3.connect("app.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.commit()
    words = ("--database=app.db", "--alone", "-c1", "--repeat=2", "--ops=1")
    said = cli("exec", *words, "--", sys.executable, "-c", "pass")
    assert "No command opened the copy of app.db" in said.text
    opens = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT 1')"
    said = cli("exec", *words, "--", sys.executable, "-c", opens, "{db}")
    assert "No command opened" not in said.text
