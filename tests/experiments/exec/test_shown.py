"""Presentation of commands: a kept report, as text and as Markdown."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.analysis.group import Group
from sqlstress.experiments.exec import ORIGINAL, STDERR, TIMEOUTS, TOUCHED, Timeouts
from sqlstress.experiments.exec.refused import error_code, refused
from sqlstress.experiments.exec.show import databases, touched
from sqlstress.experiments.exec.spec import Command
from sqlstress.experiments.exec.worker import statement_in
from sqlstress.recording import COPIED, DELETED, LOST_LOCKS, MOVED, NO_LOCKS
from sqlstress.report import Failures, Latency, read
from sqlstress.report.case import Case
from sqlstress.report.results import Holder, Holds, Sighting, WalUse, WriteLock
from sqlstress.show.text import report_text
from sqlstress.statistics.histogram import bin_of
from sqlstress.statistics.units import NS_PER_MS
from sqlstress.user_work import OURS, UNKNOWN
from sqlstress.user_work.options import Data
from tests.example_report import assert_golden, example_report

REPORT = Path(__file__).parents[2] / "corpus" / "own-exec.json"


def test_holders_of_the_write_lock_are_shown_by_program() -> None:
    report = read(REPORT)
    several = next(run for run in report.runs if run.case.concurrency > 1 and run.case.spec.command)
    lock = WriteLock(
        200,
        samples=400,
        longest_gap_s=0.03,
        held=Holds(380, 90, 1.9, 1.95, 0.0),
        holders=(
            Holder("python3 import.py kv.db", 2, Holds(300, 2, 0.84, 0.85, 0.1)),
            Holder("tickets add N kv.db", 41, Holds(60, 55, 0.0, 0.014, 0.9)),
            Holder(OURS, 1, Holds(16, 4, 0.02, 0.03, 0.5)),
            Holder(UNKNOWN, 3, Holds(4, 4, 0.0, 0.01, 0.2)),
        ),
    )
    unseen = replace(
        lock, samples=390, held=Holds(), holders=(), error="cannot read kv.db: Permission denied."
    )
    told = tuple(replace(trial, write_lock=lock) for trial in several.trials)
    alone = replace(several, case=replace(several.case, concurrency=1))
    runs = (
        replace(alone, trials=tuple(replace(trial, write_lock=unseen) for trial in several.trials)),
        replace(several, trials=told),
    )
    assert_golden("exec-where.txt", report_text(replace(report, runs=runs, planned=2)))


def test_growth_of_the_wal_is_reported_with_its_kind() -> None:
    report = read(REPORT)
    run = next(run for run in report.runs if run.case.spec.command)
    wal = WalUse(4096, 256_000_000, 256_000_000, 62_500, 62_000, 62_500, 62_000)
    grown = replace(run, trials=tuple(replace(trial, wal=wal) for trial in run.trials))
    text = " ".join(report_text(replace(report, runs=(grown,), planned=1)).split())
    assert "The WAL grew to 256 MB (62,500 frames)" in text and "overlapped without a pause" in text
    assert "The WAL grew" not in report_text(report)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Error: stepping, database is locked (5)", 5),
        ("sqlite3.OperationalError: database is locked", 5),
        ("database is locked (517) (SQLITE_BUSY_SNAPSHOT)", 517),
        ("SQLite3::BusyException: SQLITE_BUSY_RECOVERY", 261),
        ("database is locked (261)", 261),
        ("database table is locked: t (6)", 6),
        ("SQLITE_LOCKED_SHAREDCACHE: database table is locked (262)", 262),
        ("Error: unable to open database file", 14),
        ("attempt to write a readonly database", 8),
        ("no such table: t", None),
        ("line 5: value 517 is wrong", None),
        ("LOCKED: PROTOCOL ERROR 15, disk is FULL (5)", None),
        ("interrupted, out of memory", None),
    ],
)
def test_error_code_is_that_of_a_message_of_sqlite(message: str, code: int | None) -> None:
    assert error_code(message) == code


@pytest.mark.parametrize(
    ("source", "statement"),
    [
        ('db.execute("PRAGMA journal_mode=WAL")', "journal_mode"),
        ("db.pragma('journal_mode = WAL')", "journal_mode"),
        ('db.execute("""', ""),
        ("db.prepare(`INSERT INTO t VALUES (?)`).run(1)", "write"),
        ("db.execute('begin immediate')", "begin"),
        ("db.commit()", "commit"),
        ("add(row)", ""),
    ],
)
def test_statement_is_found_in_a_line_of_source_code(source: str, statement: str) -> None:
    assert statement_in(source) == statement


def explained(
    concurrency: int,
    failed_ms: float,
    *messages: str,
    source: str = "",
    loss: str = "",
    more: Sequence[Sighting] = (),
) -> list[str]:
    """Return the findings on a case whose commands printed messages and failed after a time.

    `loss` is a kind of lost locks, and `more` has further observations of the trial.
    """
    run = example_report().runs[0]
    latency = Latency.from_buckets({bin_of(round(failed_ms * NS_PER_MS)): 9}, round(failed_ms * NS_PER_MS))
    traits = {"source": source, "statement": statement_in(source)}
    sightings = tuple(Sighting(STDERR, message, 9, message, traits) for message in messages)
    if loss:
        sightings += (Sighting(LOST_LOCKS, loss, 1, traits={"file": "kv.db", "at": ""}),)
    sightings += tuple(more)
    trial = replace(run.trials[0], failures=(Failures("", "", latency),), sightings=sightings)
    case = Case(workload="exec", concurrency=concurrency, spec=Command(command=("sh", "cron.sh")))
    group = Group(case, (replace(run, case=case, trials=(trial,)),))
    return [finding.text for finding in (*touched(group), *refused(group))]


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        ("", "The disk or the file system failed"),
        (NO_LOCKS, "follows from the missing locks."),
        (DELETED, "follows from the deleted WAL."),
    ],
)
def test_disk_errors_without_locks_are_not_blamed_on_the_disk(loss: str, text: str) -> None:
    (found,) = explained(2, 1.0, "OperationalError: disk I/O error", loss=loss)
    assert text in found


def texts_of(**fields: str) -> tuple[Sighting]:
    """Return the observation of busy timeouts in the text of a command."""
    return (Sighting(TIMEOUTS, "", 1, traits=Timeouts(**fields)._asdict()),)


SHELL_ERROR = "Runtime error near line 2: database is locked (5)"


def test_short_timeout_in_the_text_is_the_only_cause_that_is_named() -> None:
    short = {"short": "PRAGMA busy_timeout = 5", "short_at": "add.sh:9", "short_ms": "5"}
    (found,) = explained(4, 14, SHELL_ERROR, more=texts_of(**short, shells="yes", bail="yes"))
    assert "PRAGMA busy_timeout = 5 (add.sh:9) waits for 5 ms only. Its unit is milliseconds" in found
    assert found.endswith("write 5000 for 5 s.")
    (found,) = explained(4, 14, SHELL_ERROR, more=texts_of(**short, shells="yes", deferred="yes"))
    assert "(1) PRAGMA busy_timeout = 5" in found and "(2) The transaction had read" in found
    assert "raise it" not in found


def test_cause_that_the_text_contradicts_is_not_named() -> None:
    (found,) = explained(4, 14, SHELL_ERROR)
    assert "SQLite's shell waits for no lock" in found and "The transaction had read" in found
    (found,) = explained(4, 14, SHELL_ERROR, more=texts_of(shells="yes", unset_at="add.sh:4", bail="yes"))
    assert "SQLite's shell (add.sh:4) waits for no lock unless .timeout is set: use" in found
    assert "-bail" not in found and "The transaction had read" not in found
    (found,) = explained(4, 14, SHELL_ERROR, more=texts_of(shells="yes", deferred="yes"))
    assert "waits for no lock" not in found and "The transaction had read" in found


def test_errors_after_a_replaced_database_are_its_consequences() -> None:
    traits = {"file": "kv.db", "program": "mv", "at": "compact.sh:11"}
    messages = ("Error: stepping, disk I/O error (10)", "attempt to write a readonly database (1032)")
    (found,) = explained(4, 14, *messages, more=(Sighting(TOUCHED, MOVED, 1, traits=traits),))
    assert found.startswith("mv (compact.sh:11) moved, replaced or deleted kv.db while it was in use.")
    assert "SQLITE_IOERR and SQLITE_READONLY_DBMOVED follow from it. Use VACUUM" in found
    damaged, copied = "database disk image is malformed (11)", Sighting(TOUCHED, COPIED, 1, traits=traits)
    found, other = explained(4, 14, damaged, messages[1], more=(copied,))
    assert "may be torn. SQLITE_CORRUPT follows from it." in found and "READONLY" in other


@pytest.mark.parametrize(
    ("traits", "text"),
    [
        ({"pid": "4711"}, "(size 1 to 2), while process 4711 had it open."),
        ({}, "(size 1 to 2), by a program that was not seen. If it is your command, write {db} in it"),
    ],
    ids=["known process", "unknown process"],
)
def test_changed_original_names_the_process_or_the_remedy(traits: dict[str, str], text: str) -> None:
    run = example_report().runs[0]
    sighting = Sighting(ORIGINAL, "size 1 to 2", 1, traits=traits)
    case = Case(workload="exec", spec=Command(command=("sh", "{db}"), data=Data(database="my.db")))
    trial = replace(run.trials[0], sightings=(sighting,))
    (finding,) = databases(Group(case, (replace(run, case=case, trials=(trial,)),)))
    assert finding.text.startswith(f"my.db itself changed during the load {text}")


LOCKED = "database is locked"


def test_causes_follow_the_number_of_processes_and_the_time() -> None:
    (soon,) = explained(8, 5.0, LOCKED)
    assert "(1) The busy timeout was 0" in soon and "(2) The transaction had read" in soon
    assert soon.endswith("busy timeout is shorter than that time, raise it.")
    (late,) = explained(8, 5001.0, LOCKED)
    assert "(1) For the whole busy timeout" in late and "busy timeout was 0" not in late
    assert "shorter than that time" not in late
    (alone,) = explained(1, 5001.0, LOCKED)
    assert "No other process was at work" in alone and "(1) An idle connection of the same process" in alone
    assert "held the lock at every try" not in alone
    assert explained(8, 5.0, "syntax error") == []


@pytest.mark.parametrize(
    ("message", "cure"),
    [
        ("Runtime error near line 1: database is locked (5)", "sqlite3 -bail -cmd '.timeout 5000'"),
        ("Error: near line 1: database is locked", "sqlite3 -bail -cmd '.timeout 5000'"),
        ("Error: stepping, database is locked (5)", "sqlite3 -cmd '.timeout 5000'"),
    ],
    ids=["script", "old script", "argument"],
)
def test_sqlite_shell_without_a_timeout_is_the_first_cause(message: str, cure: str) -> None:
    (text,) = explained(8, 5.0, message)
    assert "(1) SQLite's shell waits for no lock" in text and cure in text and "timeout was 0" not in text


def test_time_of_commands_that_repeat_their_work_is_not_a_wait() -> None:
    (text,) = explained(8, 2000.0, LOCKED, f"Error: {LOCKED}")
    assert "after 2.0 s" not in text and "(1) The busy timeout was 0" in text
    (text,) = explained(8, 2000.0, LOCKED)
    assert "after 2.0 s" in text and "(1) For the whole busy timeout" in text


def test_possible_causes_are_shown_in_full() -> None:
    texts = explained(8, 5000.0, LOCKED) + explained(8, 5.0, LOCKED)
    assert all(len(text) < 800 and "(2) " in text for text in texts)


def test_statement_in_the_output_decides_the_cause() -> None:
    (switch,) = explained(8, 5.0, LOCKED, source="db.execute('PRAGMA journal_mode=wal')")
    assert "at db.execute('PRAGMA journal_mode=wal'). Switching the journal mode" in switch
    assert "shorter than that time" not in switch
    (begin,) = explained(8, 5.0, LOCKED, source="db.execute('BEGIN IMMEDIATE')")
    assert "(1) The busy timeout was 0" in begin and "had read" not in begin


def test_refused_snapshots_explain_other_failures_at_once() -> None:
    (both,) = explained(8, 5.0, "database is locked (517)", "database is locked (5)")
    assert "printed SQLITE_BUSY_SNAPSHOT 9 times" in both and "same reason 9 failed with SQLITE_BUSY" in both
    assert "(1) The transaction had read before its first write" in both


def test_damage_in_the_output_is_explained() -> None:
    (damaged,) = explained(8, 5.0, "Error: database disk image is malformed (11)")
    assert "printed SQLITE_CORRUPT 9 times. The file is damaged." in damaged and ".recover" in damaged
