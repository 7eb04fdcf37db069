"""Verdicts and messages if another program changes a database during a measurement."""

import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import sqlstress
from sqlstress.report import Run
from tests.engine.processes import PATIENCE_S, saved_report
from tests.experiments.measured import wait_for
from tests.faults.commands import Held, left
from tests.rows import fault, thorough
from tests.targets.filled import exchange

COMMON = ("--synchronous", "off", "--busy-timeout", "300ms", "-o", "report.json", "--quiet")
KV = ("kv", "--warmup", "100ms", "--duration", "300ms", "--key-space", "2000", "--repeat", "1")
READING = (*KV, "--read-ratio", "1")
"""Without writes of our own, a foreign row is not overwritten."""
ONCE, TINY = ("--repeat", "1"), ("--scale", "1000")
FIXED = {
    "keys": ("keys", "--users", "1000", "--items", "200", "--schema", "no-key", "--id-type", "int", *ONCE),
    "cycles": ("cycles", "--settings", "wal", "--cycles", "400", *ONCE),
    "methods": ("methods", "--phase", "insert", "--method", "1b1", *("--driver", "sqlite3"), *TINY, *ONCE),
}
GIVEN = {
    "keys": ("INSERT INTO picks (user, item) VALUES (4711, 1)", "4711"),
    "cycles": ("CREATE TABLE stranger (a)", "stranger"),
    "methods": ("INSERT INTO sample (path) VALUES ('4711')", "4711"),
}
"""For each workload: a foreign statement, and a word of the message about it."""
PAGE = 4096

Act = Callable[[Path], object]

in_use = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows lets nobody delete a file that is in use"
)


def disturbed(
    place: Path, act: Act, *arguments: str, victim: str = "kv.db", moment: str = "connected"
) -> tuple[int, str, Run]:
    """Change a database of a paused command; return exit code, errors and run.

    The pause comes when the workers are connected and before they begin, so that the load always meets the
    change, however fast it is.
    """
    processes = () if arguments[0] in ("methods", "cycles") else ("-c", "2")
    with Held(place, moment, *arguments, *processes, *COMMON) as command:
        act(command.files(victim)[0])
        code, _, errors = command.finish()
    ours = {name.partition("-")[0] for name in left(place)}
    # Windows does not remove open files, and some of these acts keep a file open.
    assert ours == {"report.json"} or (sys.platform == "win32" and ours == {"report.json", "sqlstress"})
    return code, errors, saved_report(place).runs[0]


def truncate_to(size: Callable[[int], int]) -> Act:
    return lambda path: os.truncate(path, size(path.stat().st_size))


def flip(offset: int) -> Act:
    """Return an act that inverts the byte at an offset."""

    def act(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(offset)
            (byte,) = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 0xFF]))

    return act


def file_with_suffix(suffix: str, act: Act) -> Act:
    return lambda path: act(path.with_name(path.name + suffix))


def sql(statement: str) -> Act:
    """Return an act that runs a statement on a foreign connection."""

    def act(path: Path) -> None:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            insist(connection, statement)

    return act


def insist(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement as soon as its lock is free: SQLite's own handler might sleep until the run ends."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise


@pytest.fixture
def hold_lock() -> Iterator[Callable[[str], Act]]:
    """Return a function whose acts take a foreign lock and hold it until the test ends."""
    with ExitStack() as connections:

        def locking(kind: str) -> Act:
            def act(path: Path) -> None:
                connection = sqlite3.connect(path, timeout=0, isolation_level=None)
                connections.enter_context(closing(connection))
                insist(connection, f"BEGIN {kind}")

            return act

        yield locking


# The file itself


@pytest.mark.thorough
@fault("database", "the database deleted or replaced under load", "exit 1; the trial is not valid")
@in_use
@pytest.mark.parametrize(
    ("act", "happened"),
    [
        (Path.unlink, "was deleted"),
        (lambda path: shutil.rmtree(path.parent), "was deleted"),
        (exchange, "was replaced by another file"),
    ],
    ids=["deleted", "with its folder", "replaced"],
)
def test_run_without_its_database_has_no_figures(tmp_path: Path, act: Act, happened: str) -> None:
    code, errors, run = disturbed(tmp_path, act, *KV)
    text = f"kv.db {happened} while it was measured"
    assert (code, run.error, run.valid) == (1, text, ())
    assert run.verdict.counterexamples == (text,)
    assert f"Error: the data is wrong: {text}.\n" in errors


@pytest.mark.thorough
@fault("database", "the database cut off, or a byte of it inverted", "exit 1; what SQLite says of the file")
@in_use
@pytest.mark.parametrize("size", [lambda _: 0, lambda size: size - PAGE], ids=["nothing", "a page"])
def test_truncated_database_fails_although_sqlite_writes_on(
    tmp_path: Path, size: Callable[[int], int]
) -> None:
    code, errors, run = disturbed(tmp_path, truncate_to(size), *KV)
    assert (code, run.verdict.status) == (1, "failed")
    messages = ("not a database", "malformed", "no such table", "lacks definition", "Page ")
    assert any(message in errors for message in messages)


@pytest.mark.thorough
@fault("database", "the database cut off, or a byte of it inverted", "exit 1; what SQLite says of the file")
@pytest.mark.parametrize("offset", [16, 3 * PAGE], ids=["file header", "page header"])
def test_inverted_byte_fails_the_proof(tmp_path: Path, offset: int) -> None:
    code, errors, run = disturbed(tmp_path, flip(offset), *READING, "--journal-mode", "delete")
    assert (code, run.verdict.status) == (1, "failed")
    # The message depends on who reads the page first: a worker, or the check of all pages.
    assert any(message in errors for message in ("file is not a database", "malformed", "Page 4: "))


@fault(
    "database",
    "the WAL or its index deleted under load",
    "exit 4, or 1 where writes were lost; the trial is not valid",
)
@in_use
@pytest.mark.thorough
@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_run_without_its_wal_has_no_figures(tmp_path: Path, suffix: str) -> None:
    code, errors, run = disturbed(tmp_path, file_with_suffix(suffix, Path.unlink), *KV)
    text = f"kv.db{suffix} was deleted while it was measured"
    # If two workers close at once, neither may run the last checkpoint; the content of a deleted WAL is lost.
    assert (code, run.error, run.valid) == (1 if run.verdict.status == "failed" else 4, text, ())
    assert text in errors or code == 1


def holds(wal: Path, frames: int) -> bool:
    """Return whether a WAL has at least `frames` frames since its restart: they have the salts of its header.

    Source: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
    """
    content = wal.read_bytes()
    frame = 32 + (frames - 1) * (24 + PAGE)
    return len(content) > frame + 16 and content[16:24] == content[frame + 8 : frame + 16]


@pytest.mark.thorough
@fault("database", "the WAL emptied under load", "exit 1 or 4")
@in_use
def test_emptied_wal_fails_the_run(tmp_path: Path) -> None:
    def act(path: Path) -> None:
        wal = path.with_name("kv.db-wal")
        wait_for(lambda: holds(wal, 250))
        os.truncate(wal, 0)

    # More pages than are rewritten before the end: a rewrite would restore the lost ones.
    options = ("--key-space", "20000", "--value-size", "1000", "--batch", "20", "--wal-autocheckpoint", "0")
    code, errors, run = disturbed(tmp_path, act, *KV, "--duration", "1s", *options, moment="measuring")
    assert code in (1, 4)
    assert run.verdict.status == "failed" or run.error
    assert errors.startswith("Error: ")


# Rows and settings, through SQLite


@fault("database", "a row inserted or changed by another program", "exit 1; the key is named")
@pytest.mark.parametrize(
    ("statement", "key"),
    [
        thorough("INSERT INTO kv VALUES (4711, 1)", "key 4711"),
        ("UPDATE kv SET value = 7 WHERE key = 13", "key 13"),
    ],
    ids=["inserted", "changed"],
)
def test_foreign_row_fails_the_proof(tmp_path: Path, statement: str, key: str) -> None:
    code, errors, run = disturbed(tmp_path, sql(statement), *READING)
    assert (code, run.verdict.status) == (1, "failed")
    assert key in errors


@pytest.mark.thorough
@fault("database", "the journal mode switched to WAL by another program", "exit 4; the trial is not valid")
def test_another_journal_mode_makes_the_trial_invalid(tmp_path: Path) -> None:
    arguments = (*READING, "--journal-mode", "delete")
    code, errors, run = disturbed(tmp_path, sql("PRAGMA journal_mode=wal"), *arguments)
    text = "another program changed kv.db while it was measured: its journal_mode was delete and is wal"
    assert (code, run.error, run.valid) == (4, text, ())
    assert text in errors


@pytest.mark.thorough
@fault("database", "the journal mode switched away from WAL", "SQLite refuses it")
def test_sqlite_refuses_to_leave_wal_under_load(tmp_path: Path) -> None:
    refused: list[str] = []

    def act(path: Path) -> None:
        with closing(sqlite3.connect(path, timeout=0.1)) as connection:
            try:
                connection.execute("PRAGMA journal_mode=delete")
            except sqlite3.OperationalError as error:
                refused.append(str(error))

    code, errors, run = disturbed(tmp_path, act, *READING)
    assert refused == ["database is locked"]
    assert (code, errors, run.verdict.status) == (0, "", "ok")


@pytest.mark.thorough
@fault("database", "an index added by another program", "exit 1; the index is named")
def test_foreign_index_makes_the_trial_invalid(tmp_path: Path) -> None:
    code, errors, run = disturbed(tmp_path, sql("CREATE INDEX i ON kv (value)"), *KV)
    text = "another program changed kv.db while it was measured: its schema_version was 2 and is 3"
    assert (code, run.error, run.valid, run.verdict.status) == (1, text, (), "failed")
    assert "holds definition 3, the index i of kv" in errors


# A lock that is never released


@pytest.mark.thorough
@fault(
    "database",
    "a lock that another program never gives back",
    "exit 4 after the time-out; the trial is not valid",
)
@pytest.mark.parametrize(("kind", "journal_mode"), [("IMMEDIATE", "wal"), ("EXCLUSIVE", "delete")])
def test_permanent_lock_ends_with_a_message_within_the_time_out(
    tmp_path: Path, hold_lock: Callable[[str], Act], kind: str, journal_mode: str
) -> None:
    locked_s: list[float] = []

    def act(path: Path) -> None:
        hold_lock(kind)(path)
        locked_s.append(time.monotonic())

    code, errors, run = disturbed(tmp_path, act, *KV, "--journal-mode", journal_mode)
    text = "kv.db is locked by another program: end it and measure again"
    assert (code, run.error, run.valid, run.verdict.status) == (4, text, (), "unknown")
    assert text in errors
    assert time.monotonic() - locked_s[0] < 30, "the window, a time-out, and the program's own end"


@pytest.mark.long
@fault(
    "database",
    "a lock that another program never gives back, with `--ops`",
    "exit 4 after a minute without a write",
)
def test_fixed_amount_of_work_does_not_wait_forever_for_a_lock(
    tmp_path: Path, hold_lock: Callable[[str], Act]
) -> None:
    arguments = ("kv", "--ops", "1000000", "--key-space", "2000", "--repeat", "1")
    code, errors, run = disturbed(tmp_path, hold_lock("IMMEDIATE"), *arguments)
    assert (code, run.valid) == (4, ())
    assert "kv.db is locked by another program: end it and measure again" in errors


# One of several files


@pytest.mark.thorough
@fault(
    "database", "one of three files deleted, locked for ever, given a row", "exit 1, 4, 1; the file is named"
)
@pytest.mark.parametrize("fault", [pytest.param("deleted", marks=in_use), "locked", "a row"])
def test_harmed_file_of_several_is_named(tmp_path: Path, hold_lock: Callable[[str], Act], fault: str) -> None:
    acts: dict[str, tuple[Act, int]] = {
        "deleted": (Path.unlink, 1),
        "locked": (hold_lock("IMMEDIATE"), 4),
        "a row": (sql("INSERT INTO kv VALUES (4711, 1)"), 1),
    }
    act, expected = acts[fault]
    code, errors, _ = disturbed(tmp_path, act, *KV, "-b", "3", victim="kv_1.db")
    assert code == expected
    assert "kv_1.db" in errors


# The other workloads


@fault(
    "database",
    "in `keys`, `cycles`, `methods`: the database deleted, locked for ever, changed",
    "exit 1, 4, 1",
)
@pytest.mark.parametrize(
    ("workload", "fault"),
    [
        ("methods", "a row"),
        thorough("keys", "a row"),
        thorough("cycles", "a row"),
        thorough("keys", "deleted"),
        thorough("cycles", "locked"),
    ],
)
def test_every_workload_reports_changes_to_its_database(
    tmp_path: Path, hold_lock: Callable[[str], Act], workload: str, fault: str
) -> None:
    if sys.platform == "win32" and fault == "deleted":
        pytest.skip("Windows lets nobody delete a file that is in use")
    statement, expected_text = GIVEN[workload]
    acts: dict[str, tuple[Act, int, str]] = {
        "deleted": (Path.unlink, 1, "kv.db was deleted while it was measured"),
        "locked": (hold_lock("IMMEDIATE"), 4, "kv.db is locked by another program: end it and measure again"),
        "a row": (sql(statement), 1, expected_text),
    }
    act, expected, text = acts[fault]
    code, errors, _ = disturbed(tmp_path, act, *FIXED[workload])
    assert code == expected
    assert text in errors


def test_wrong_data_of_a_late_trial_is_not_lost_by_a_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_s = iter((0.1, 0.0))

    def lateness_s(*_: object) -> float:
        (path,) = tmp_path.glob("**/kv.db")
        sql("UPDATE kv SET value = 7 WHERE key = 13")(path)
        return next(late_s)

    monkeypatch.setattr("sqlstress.engine.trial.lateness_s", lateness_s)
    report = sqlstress.measure(
        "kv", concurrency=1, duration=0.1, warmup=0.05, repeat=1, key_space=500, directory=tmp_path
    )
    (run,) = report.runs
    assert run.verdict.status == "failed" and [trial.attempts for trial in run.trials] == [1]
