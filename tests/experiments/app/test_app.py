"""An application from its file to its report: correct, wrong, and misbehaving applications."""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.api import Report
from sqlstress.cli.commands import run
from sqlstress.errors import SqlstressError
from sqlstress.experiments.app.work import NAME
from sqlstress.plan import from_toml
from sqlstress.recording import CALL_COST
from sqlstress.report import read
from sqlstress.user_work import AFTER, OURS, UNDER, UNKNOWN
from tests.own_app import HEAD, OPERATIONS, WRITES, findings_of, left, line_of, measured
from tests.pages import ROOT
from tests.rows import fault

BANK = ROOT / "examples" / "app" / "bank.py"


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


@pytest.mark.thorough
def test_damaged_database_is_wrong_data_even_if_no_check_can_run(tmp_path: Path) -> None:
    damages = """
from sqlstress import finish
@finish
def damage(c):
    c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(os.environ["SQLSTRESS_DATABASE"], "r+b") as file:
        file.seek(4096)
        file.write(b"x" * 4096)
@check
def none_lost(query, database):
    query("SELECT x FROM t")
"""
    report = measured(tmp_path, HEAD + WRITES + damages, concurrency=1, verify="quick")
    statuses = {check.name: check.status for check in report.runs[0].verdict.checks}
    assert statuses["quick_check"] == "failed" and statuses[AFTER] == "unknown", statuses


def test_transaction_may_create_tables(tmp_path: Path) -> None:
    text = """
@transaction
def lazy(c):
    c.execute("CREATE TABLE IF NOT EXISTS own (x)")
"""
    (run,) = measured(tmp_path, HEAD + text).runs
    assert run.verdict.status == "ok" and not run.trials[0].error, run


def test_bank_is_measured_checked_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["app", str(BANK), "-c1,2", "--repeat=1", "--duration=700ms", "--no-progress", "--details"]
    assert run([*words, "-oa.json"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "bank.py: transfer 75%, balance 25%; 1 check before, during and after" in said
    assert "journal_mode=wal, synchronous=full, busy timeout 30s, foreign keys off" in said
    assert "writes begin IMMEDIATE (3 connections)" in said
    for measured_run in read(Path("a.json")).runs:
        (trial,) = measured_run.trials
        assert set(trial.latency) == {"transfer", "balance"} and measured_run.verdict.status == "ok"
        assert trial.effective == {"journal_mode": "wal", "synchronous": "full", "busy_timeout": "30000"}
        assert {check.name for check in measured_run.verdict.checks} >= {NAME, UNDER, AFTER}
    assert left(tmp_path) == ["a.json"]


@pytest.mark.thorough
def test_failure_that_only_a_longer_window_shows_is_reported(tmp_path: Path) -> None:
    text = """
import time
begun = time.monotonic()
@transaction
def late(c):
    if time.monotonic() - begun > 1.5:
        c.execute("INSERT INTO missing VALUES (1)")
    time.sleep(0.001)
"""
    report = measured(tmp_path, HEAD + text, duration="300ms", repeat=5)
    (run,) = report.runs
    assert run.longer and run.longer.failed and run.failed_share() > 0
    assert "no such table: missing" in str([finding.text for finding in report.findings])


def test_plan_can_name_a_file(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f"[[case]]\nworkload = 'app'\nfile = '{BANK}'\nconcurrency = '1,3'\n", encoding="utf-8")
    cases = from_toml(plan)
    assert [case.concurrency for case in cases] == [1, 3]
    assert [item.name for item in cases[0].spec.transactions] == ["transfer", "balance"]
    assert [item.name for item in cases[0].spec.data.checks] == ["no_money_appears"]


@pytest.mark.thorough
def test_exceptions_are_counted_by_sqlite_error_code(tmp_path: Path) -> None:
    text = """
@transaction
def upgrade(c):
    c.execute("BEGIN")
    try:
        c.execute("SELECT * FROM t").fetchall()
        time.sleep(0.002)
        c.execute("UPDATE t SET x = x + 1")
        c.execute("COMMIT")
    except BaseException:
        c.execute("ROLLBACK")
        raise
@transaction
def odd(c):
    print("x" * 10**6, flush=True)
    os.chdir("/")
    raise ValueError("mine")
"""
    # The calls suffice to conflict with each other, even if a busy machine is slow.
    report = measured(tmp_path, HEAD + text, concurrency=4, ops=60)
    (trial,) = report.runs[0].trials
    raised = {sighting.what: sighting for sighting in trial.sightings if sighting.topic == "exception"}
    assert raised["ValueError"].example == "mine" and raised["ValueError"].traits["transaction"] == "odd"
    assert set(raised) <= {"ValueError", "SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT"} and len(raised) > 1
    assert trial.failed and (trial.busy or 0) + (trial.busy_snapshot or 0) > 0
    assert {"raised", "failed-statement"} <= codes(report)
    assert report.exit_code == 1 and " raised " in report.problems[0]


@pytest.mark.thorough
def test_copy_is_stressed_and_the_original_unchanged(tmp_path: Path) -> None:
    original = tmp_path / "app.db"
    with closing(sqlite3.connect(original)) as connection, connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (0)")
    before = original.read_bytes()
    text = f"""
import sqlite3
from sqlstress import connect, transaction
@connect
def opened(path): return sqlite3.connect(path, timeout=30, isolation_level=None)
{WRITES}"""
    report = measured(tmp_path, text, database=str(original))
    assert report.ok and (report.figures[0].tps or 0) > 0
    assert report.runs[0].trials[0].effective["journal_mode"] == "delete"
    assert "journal-mode" in codes(report)
    opens_original = text.replace("connect(path,", f"connect({str(original)!r},")
    with pytest.raises(SqlstressError, match="the app opens the original database"):
        measured(tmp_path, opens_original, database=str(original))
    assert original.read_bytes() == before
    assert left(tmp_path) == ["app.db"]


posix = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no forks and no signals, and keeps its locks"
)


@posix
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os._exit(5)", "ended with exit code 5 and no result"),
        ("sys.exit(6)", "ended with exit code 6 and no result"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
    ],
)
def test_transaction_that_ends_its_process_is_reported(end: str, said: str, tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + WRITES.replace("c.execute", f"{end} or c.execute"))
    assert report.exit_code == 4
    assert said in report.problems[0]
    assert left(tmp_path) == []


@posix
@pytest.mark.thorough
def test_forked_child_does_not_return_into_the_loop(tmp_path: Path) -> None:
    text = """
@transaction
def forks(c):
    if random.random() < 0.1 and not os.fork():
        return  # the child, into what would be our loop
    c.execute("UPDATE t SET x = x + 1")
    if random.random() < 0.01 and not os.fork():
        time.sleep(600)
"""
    assert measured(tmp_path, HEAD + text, ops=200).figures[0].verified == "ok"
    assert left(tmp_path) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WRITES + "@check\ndef odd(query): raise KeyError('a')", "before any load, odd: KeyError: 'a'"),
        (WRITES + "@check\ndef odd(query): query('SELECT')", r"the check odd \(.*own.py:odd\) failed to run"),
        (WRITES + "def odd(p): sys.exit(3)\nopened = connect(odd)", "connect failed: SystemExit: 3"),
        (
            WRITES + "@setup\ndef made(p): pass",
            "setup left the database empty",
        ),
        (WRITES + "@setup\ndef made(p): 1 / 0", "setup failed: ZeroDivisionError: division by zero"),
        (
            WRITES + "@setup\ndef made(p): os._exit(2)",
            "setup ended the process: .* code 2",
        ),
    ],
)
def test_failure_before_the_load_is_a_one_line_error(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SqlstressError, match=said) as caught:
        measured(tmp_path, HEAD + text)
    assert "\n" not in str(caught.value)
    assert left(tmp_path) == []


@pytest.mark.thorough
def test_application_on_other_files_fails_and_an_unseen_one_is_unknown(
    tmp_path: Path,
) -> None:
    text = f"""
@transaction
def add(c):
    own = sqlite3.connect({str(tmp_path / "other.db")!r}, timeout=30)
    own.execute("CREATE TABLE IF NOT EXISTS t (x)")
    own.close()
"""
    report = measured(tmp_path, HEAD + text, allow_other_files=True)
    assert report.exit_code == 1
    assert "other.db instead" in report.problems[0]
    report = measured(tmp_path, HEAD + "@transaction\ndef nothing(c): pass\n")
    assert [check.status for check in report.runs[0].verdict.checks if check.name == NAME] == ["unknown"]
    assert report.exit_code == 0 and "proof-unknown" in codes(report)


@pytest.mark.thorough
def test_connect_runs_in_another_process_than_setup(tmp_path: Path) -> None:
    text = """
made_here = []
@setup
def made(path):
    made_here.append(path)
    sqlite3.connect(path).executescript("CREATE TABLE t (x); INSERT INTO t VALUES (0)")
@connect
def opened(path):
    assert not made_here, "the mapper is bound already"
    return sqlite3.connect(path, timeout=30, isolation_level=None)
"""
    assert measured(tmp_path, HEAD + text + WRITES).runs[0].verdict.status == "ok"


BESIDE = """
from pathlib import Path
@setup
def made(path):
    Path(path).with_name("queue").mkdir()
    c = sqlite3.connect(Path(path).parent / "queue" / "data.db")
    c.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (0)")
    c.close()
@connect
def opened(path):
    return sqlite3.connect(Path(path).parent / "queue" / "data.db", timeout=30)
@transaction
def add(c):
    with c:
        c.execute("UPDATE t SET x = x + 1")
"""


@pytest.mark.thorough
def test_database_next_to_the_main_one_is_verified_too(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + BESIDE)
    checks = {check.name: (check.status, check.checked) for check in report.runs[0].verdict.checks}
    assert checks["quick_check"] == ("ok", 2) and checks[NAME][0] == "ok"
    assert "other-databases" not in codes(report) and "busy-timeout" not in codes(report)
    assert "writes begin DEFERRED, database queue/data.db (2 connections)" in " ".join(report.text().split())
    assert left(tmp_path) == []


@pytest.mark.thorough
def test_damaged_database_next_to_the_main_one_fails(tmp_path: Path) -> None:
    damage = """
        other = Path(os.environ["SQLSTRESS_DATABASE"]).with_name("other.db")
        other.write_bytes(b"SQLite format 3" + bytes(4000))
"""
    report = measured(tmp_path, HEAD + BESIDE + damage)
    assert report.exit_code == 1 and "other.db: " in report.problems[0]


NOTING = (
    WRITES
    + """
    note("added")
"""
)


@pytest.mark.thorough
def test_last_checks_get_the_notes_and_the_end_of_each_process(tmp_path: Path) -> None:
    text = (
        NOTING.replace("@transaction", "from sqlstress import counter, finish, note\n@transaction")
        + """
@finish
def close(c):
    c.close()
    note("closed")
@check
def all_are_there(query, notes):
    assert [own[-1] for own in notes] == ["made", "closed", "closed"]
    counter(query("SELECT x FROM t")[0][0], notes.of("added"))
@check
def drained(database):
    with sqlite3.connect(database) as c:
        assert c.execute("DELETE FROM t").rowcount == 1
@setup
def made(path):
    opened(path).executescript("CREATE TABLE t (x); INSERT INTO t VALUES (0)")
    note("made")
"""
    )
    report = measured(tmp_path, HEAD + text)
    names = [check.name for check in report.runs[0].verdict.checks]
    assert report.ok and AFTER in names and UNDER not in names
    assert left(tmp_path) == []
    report = measured(tmp_path, HEAD + text.replace('"SELECT x FROM t"', '"SELECT x + 1 FROM t"'))
    assert report.exit_code == 1 and "all_are_there: the counter holds" in report.problems[0]


@pytest.mark.thorough
def test_refused_note_leaves_the_verdict_unknown(tmp_path: Path) -> None:
    text = "from sqlstress import note\n" + NOTING.replace('note("added")', "note(lambda: 1)")
    report = measured(tmp_path, HEAD + text + "@check\ndef none(notes): assert False")
    assert report.exit_code == 4 and "note() cannot keep what was given" in report.problems[0]
    assert report.runs[0].verdict.status == "unknown"


@pytest.mark.thorough
def test_errors_in_logs_and_threads_are_findings(tmp_path: Path) -> None:
    text = """
import logging, threading
@transaction
def add(c):
    c.execute("UPDATE t SET x = x + 1")
    logging.getLogger("shop").error("saving failed")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
"""
    report = measured(tmp_path, HEAD + text)
    found = {
        finding.facts["logged"]: finding.facts["what"]
        for finding in report.findings
        if finding.code == "unraised"
    }
    assert found == {True: "saving failed", False: "ZeroDivisionError"}
    assert report.runs[0].verdict.status == "ok"


@pytest.mark.thorough
def test_threads_that_do_not_end_are_named_and_not_waited_for(tmp_path: Path) -> None:
    text = """
import threading
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1)
@transaction
def add(c):
    c.execute("UPDATE t SET x = x + 1")
    pool.submit(len, "")
    if not any(one.name == "poller" for one in threading.enumerate()):
        threading.Thread(target=time.sleep, args=(600,), name="poller").start()
        threading.Thread(target=time.sleep, args=(600,), name="kept", daemon=True).start()
        threading.Thread(target=time.sleep, args=(0.3,), name="ending").start()
"""
    begun = time.monotonic()
    report = measured(tmp_path, HEAD + text)
    assert time.monotonic() - begun < 300
    (found,) = findings_of(report, "thread-did-not-end")
    assert (found.facts["count"], found.facts["names"]) == (2, ["poller"])
    assert report.runs[0].verdict.status == "ok"


SHARED = """
import threading
shared = None
def work():
    shared.execute("PRAGMA synchronous=OFF")
    shared.execute("UPDATE t SET x = x + ?", (1,))
@transaction
def add(c):
    global shared
    if shared is None:
        where = os.environ["SQLSTRESS_DATABASE"]
        shared = sqlite3.connect(where, 60, check_same_thread=False, isolation_level=None)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.thorough
def test_settings_of_a_shared_connection_are_read_at_the_end(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + SHARED, ledger=True)
    (run,) = report.runs
    assert "off" in run.trials[0].effective["synchronous"]
    checks = {finding.name: (finding.status, finding.note) for finding in run.verdict.checks}
    assert checks[NAME][0] == "ok", checks
    assert checks["ledger"][0] == "unknown" and "several threads" in checks["ledger"][1], checks
    (why,) = [finding.facts["why"] for finding in report.findings if finding.code == "not-rehearsed"]
    assert "a thread other than the one that opened a connection" in why


STARTS = """
HOLD = (
    "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], 30, isolation_level=None); "
    "c.execute('BEGIN IMMEDIATE'); c.execute('UPDATE t SET x = x + 1'); time.sleep(0.3); c.execute('COMMIT')"
)
@transaction
def hold_and_start(c):
    import subprocess
    c.execute("BEGIN IMMEDIATE")
    time.sleep(0.3)
    c.execute("COMMIT")
    path = c.execute("PRAGMA database_list").fetchone()[2]
    subprocess.run([sys.executable, "-S", "-E", "-c", HOLD, path], check=True)
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells of no lock who holds it")
def test_program_that_the_app_starts_is_a_separate_lock_holder(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + STARTS, where=True, concurrency=1, ops=2)
    (lock,) = (trial.write_lock for run in report.runs for trial in run.trials)
    assert lock
    named = [holder for holder in lock.holders if holder.program != UNKNOWN]
    started, own = sorted(named, key=lambda holder: holder.program == OURS)
    assert "BEGIN IMMEDIATE" in started.program and own.program == OURS
    assert min(started.held.most_s, own.held.most_s) >= 0.3


LOOKS = """
calls = 0
@check
def seen(query):
    global calls
    calls += 1
    with open("looks", "a") as file:
        file.write(f"{os.getpid()} {query('SELECT x FROM t')[0][0]}\\n")
    if calls == 2:
        os.chdir(os.path.dirname(os.environ["SQLSTRESS_DATABASE"]))
        BESIDE
"""


def test_checks_before_during_and_after_the_load_run_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = measured(tmp_path, HEAD + WRITES + LOOKS.replace("BESIDE", "pass"), concurrency=1)
    (trial,) = report.runs[0].trials
    looks = [line.split() for line in Path("looks").read_text().splitlines()]
    assert len(looks) >= 3 and len({process for process, _ in looks}) == trial.attempts
    assert (looks[0][1], looks[-1][1]) == ("0", str(OPERATIONS))
    assert {check.name: check.status for check in trial.verdict.checks}[UNDER] == "ok"


@fault(
    "workers",
    "the process that runs the checks dies beside the load",
    "exit 4; the workers' figures are kept and verified",
)
def test_checks_that_end_their_process_are_reported_and_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = measured(tmp_path, HEAD + WRITES + LOOKS.replace("BESIDE", "os._exit(7)"), concurrency=1)
    (trial,) = report.runs[0].trials
    assert trial.error and trial.error.startswith(
        "checks under load stopped: the process that runs the checks"
    )
    statuses = {check.name: check.status for check in trial.verdict.checks}
    assert (statuses[UNDER], statuses[AFTER]) == ("unknown", "ok")


FAILS = """
N = 0
@transaction
def alone(c):
    global N
    N += 1
    # A second connection takes part, so that each outcome is certain.
    other = sqlite3.connect(os.environ["SQLSTRESS_DATABASE"], timeout=30, isolation_level=None)
    try:
        {body}
    finally:
        if c.in_transaction:
            c.execute("ROLLBACK")
        other.close()
"""
STALE_SNAPSHOT = FAILS.format(
    body="""c.execute("BEGIN"); c.execute("SELECT x FROM t").fetchall()
        other.execute("UPDATE t SET x = x + 1")
        c.execute("UPDATE t SET x = x + 1")"""
)
HELD_LOCK = FAILS.format(
    body="""c.execute("PRAGMA busy_timeout = 50")
        other.execute("BEGIN IMMEDIATE")
        c.execute("UPDATE t SET x = x + 1")"""
)
OWN_CHECK = FAILS.format(body="""assert N % 2, "the stock is negative" """)


def test_raised_check_shows_its_error_and_its_share(tmp_path: Path) -> None:
    (found,) = findings_of(measured(tmp_path, HEAD + OWN_CHECK, concurrency=1, ops=10), "raised")
    assert "alone raised AssertionError, 5 times (50% of its calls): the stock is negative" in found.text


CLOSES_FILE = """
@transaction
def magic(c):
    with open(os.environ["SQLSTRESS_DATABASE"], "rb") as file:
        file.read(16)
    c.execute("UPDATE t SET x = x + 1")
"""
REMOVES_WAL = """
@transaction
def clean(c):
    c.execute("UPDATE t SET x = x + 1")
    if os.path.exists(os.environ["SQLSTRESS_DATABASE"] + "-wal"):
        os.remove(os.environ["SQLSTRESS_DATABASE"] + "-wal")
"""
COPIES_FILE = """
import shutil

@transaction
def backup(c):
    path = os.environ["SQLSTRESS_DATABASE"]
    shutil.copyfile(path, path + ".bak")
"""
LEAVES_OPEN = """
@transaction
def half(c):
    if not c.in_transaction:
        c.execute("BEGIN")
    c.execute("UPDATE t SET x = x + 1")
"""
FORKS = """
c = None

@transaction
def insert():
    if not os.fork():
        c = sqlite3.connect(os.environ["SQLSTRESS_DATABASE"], timeout=30)
        c.execute("INSERT INTO t VALUES (1)")
        c.commit()
        os._exit(0)
    os.wait()
"""
STAYS_OPEN = """
KEPT, PAUSES = [], [0.15] * 5
@transaction
def report(c):
    if not KEPT:
        KEPT.append(c.execute("SELECT x FROM t"))
    time.sleep(PAUSES.pop() if PAUSES else 0)
"""


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        pytest.param(CLOSES_FILE, "lost-locks", ["opened kv.db 5 times"], marks=posix),
        pytest.param(
            COPIES_FILE,
            "lost-locks",
            [
                "copy made so is no backup: it may be torn, or lack what is only in -wal",
                "Connection.backup() or VACUUM INTO",
            ],
            marks=posix,
        ),
        (
            LEAVES_OPEN,
            "left-open",
            ["half left a transaction open (begun by BEGIN", "keeps the write lock"],
        ),
        pytest.param(FORKS, "proof-unknown", ["processes that they fork are not watched"], marks=posix),
        (STAYS_OPEN, "open-statement", ["SELECT x FROM t (own.py:"]),
        (
            STALE_SNAPSHOT,
            "failed-statement",
            ["5 times with SQLITE_BUSY_SNAPSHOT", "Begin with BEGIN IMMEDIATE"],
        ),
        (HELD_LOCK, "failed-statement", ["5 times with SQLITE_BUSY", "the process waited for itself"]),
    ],
    ids=["opens", "copies", "leaves a transaction open", "forks", "leaves a query open", "stale", "held"],
)
def test_mistake_of_an_application_is_named(tmp_path: Path, text: str, code: str, words: list[str]) -> None:
    report = measured(tmp_path, HEAD + text, concurrency=1, ops=5)
    (finding,) = findings_of(report, code)
    assert [word for word in words if word not in finding.text] == []


def test_open_transaction_that_only_read_keeps_no_write_lock(tmp_path: Path) -> None:
    text = LEAVES_OPEN.replace("UPDATE t SET x = x + 1", "SELECT x FROM t")
    report = measured(tmp_path, HEAD + text, concurrency=1, ops=5)
    (finding,) = findings_of(report, "left-open")
    assert "write lock" not in finding.text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete a file that is open")
def test_line_of_the_app_that_deletes_the_wal_is_named(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + REMOVES_WAL, concurrency=1, ops=5)
    texts = [finding.text for finding in report.findings if finding.code == "lost-locks"]
    line = line_of(HEAD + REMOVES_WAL, "os.remove(")
    assert any(f"own.py:{line} deleted or moved kv.db-wal 1 time." in text for text in texts)


UNCHECKED = """
@transaction
def add(c):
    c.execute("PRAGMA wal_autocheckpoint=0")
    c.execute("INSERT INTO t VALUES (zeroblob(999999))")
"""


def test_wal_grows_because_the_app_turned_checkpoints_off(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + UNCHECKED, concurrency=1, ops=20)
    (finding,) = findings_of(report, "wal-growth")
    assert "because automatic checkpoints are off (wal_autocheckpoint 0)" in finding.text


REPLACES = """
@transaction
def add(c):
    path = c.execute("PRAGMA database_list").fetchone()[2]
    with sqlite3.connect(path + ".new") as copy:
        c.backup(copy)
    copy.close()
    os.replace(path + ".new", path)
    c.execute("INSERT INTO t VALUES (1)")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not replace a file that is open")
def test_errors_after_a_replaced_database_follow_from_it(tmp_path: Path) -> None:
    text = HEAD.replace("=WAL", "=DELETE") + REPLACES
    report = measured(tmp_path, text, concurrency=1, ops=5)
    (finding,) = findings_of(report, "touched-file")
    assert (
        f"os.rename (own.py:{line_of(text, 'os.replace(')}) moved, replaced or deleted kv.db" in finding.text
    )
    assert "SQLITE_READONLY_DBMOVED follows from it." in finding.text
    assert not findings_of(report, "lost-locks") and not findings_of(report, "failed-statement")


@pytest.mark.parametrize("name", [":memory:", "file:limits?mode=memory&cache=shared"])
def test_database_in_memory_is_private_to_its_process(name: str, tmp_path: Path) -> None:
    text = f"""
limits = sqlite3.connect({name!r}, uri=True)

@transaction
def limit(c):
    limits.execute("SELECT 1").fetchall()
"""
    report = measured(tmp_path, HEAD + text, concurrency=2, ops=5)
    (finding,) = findings_of(report, "in-memory")
    line = line_of(HEAD + text, "limits = ")
    assert finding.text.startswith(
        f"The database {name} (own.py:{line}) is in memory: each process has its own"
    )
    assert ("cache=shared shares it only within" in finding.text) == ("shared" in name)
    assert not findings_of(report, "other-databases")


BY_APSW = """
import apsw

@transaction
def insert():
    c = apsw.Connection(os.environ["SQLSTRESS_DATABASE"])
    c.execute("INSERT INTO t VALUES (1)")
    c.close()
"""


def test_database_that_apsw_used_was_used(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + BY_APSW, concurrency=1, ops=5)
    assert [check.status for check in report.runs[0].verdict.checks if check.name == NAME] == ["ok"]
    assert "proof-unknown" not in codes(report)


@pytest.mark.thorough
def test_calls_are_reported_with_their_openings_and_commits(tmp_path: Path) -> None:
    text = """
@transaction
def many(c):
    for _ in range(20):
        c.execute("UPDATE t SET x = x + 1")
@transaction
def opens():
    with closing(sqlite3.connect(os.environ["SQLSTRESS_DATABASE"], timeout=30)) as c:
        c.execute("SELECT * FROM t").fetchall()
"""
    report = measured(tmp_path, HEAD + f"from contextlib import closing\n{text}")
    costs = {
        sighting.what: sighting.traits
        for run in report.runs
        for trial in run.trials
        for sighting in trial.sightings
        if sighting.topic == CALL_COST
    }
    assert float(costs["opens"]["connections"]) >= 1 and costs["opens"]["objects"] == "1"
    assert float(costs["opens"]["least_opening_s"]) > 0
    assert any("A call of many makes" in finding.text for finding in report.findings)


CATCHES = """
def work(c):
    c.execute("PRAGMA busy_timeout = 0")
    other = opened(os.environ["SQLSTRESS_DATABASE"])
    other.execute("BEGIN IMMEDIATE")
    try:
        c.execute("STATEMENT").fetchall()
    except sqlite3.OperationalError:
        other.rollback()
        AFTER
    finally:
        other.rollback()
        other.close()
transaction(work)
"""
UPDATE, CHECKPOINT = "UPDATE t SET x = x + 1", "PRAGMA wal_checkpoint(RESTART)"
LOST, REPEATED = (
    "5 calls of work caught the error and committed nothing",
    "All these calls repeated their work",
)


@pytest.mark.parametrize(
    ("statement", "after", "expected"),
    [
        (UPDATE, "pass", [LOST]),
        (UPDATE, f"c.execute('{UPDATE}')", [REPEATED]),
        (UPDATE, "raise", []),
        (CHECKPOINT, "pass", []),
    ],
    ids=["lost", "repeated", "raised", "no work"],
)
def test_caught_error_is_reported_with_what_the_calls_did_then(
    tmp_path: Path, statement: str, after: str, expected: list[str]
) -> None:
    text = HEAD + CATCHES.replace("STATEMENT", statement).replace("AFTER", after)
    report = measured(tmp_path, text, concurrency=1, ops=5, max_failed="100%")
    (finding,) = findings_of(report, "failed-statement")
    assert [part for part in (LOST, REPEATED) if part in finding.text] == expected
