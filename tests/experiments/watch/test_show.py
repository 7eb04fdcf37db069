"""Presentation of a watch: the holders of locks, the conclusions, and the remedies."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from sqlstress.experiments.watch.show import MOST_ROWS, conclusion, findings, now_line, now_page
from sqlstress.experiments.watch.spec import (
    CHECKPOINT,
    DELETED,
    DELETED_WAL,
    EXCLUSIVE,
    JOURNAL,
    OTHER_WAL,
    PENDING,
    READ,
    REPLACED,
    WRITE,
    Course,
    Event,
    HoldUsage,
    MappedSqlite,
    Process,
    Watch,
    Watching,
)
from sqlstress.report import Report
from sqlstress.report.results import Holds
from sqlstress.show.endings import endings, exit_code
from sqlstress.show.formats import DOCUMENTS, FORMATS
from sqlstress.show.text import WIDTH, report_text
from tests.drawing import examples
from tests.example_report import assert_golden, corpus_report
from tests.strategies import watches

_KEPT = corpus_report("watch").results["watch"]
assert isinstance(_KEPT, Watch)
WATCH = _KEPT
IMPORT, WORKER, READER = WATCH.processes
TOO_LONG = replace(
    WATCH,
    asked=Watching(None, 100, 2.0),
    held_too_long=0,
    processes=(replace(IMPORT, locks={WRITE: Holds(863, 4, 2.01, 2.03, 8.0, 2.01)}), WORKER, READER),
)
OLD = replace(
    WATCH,
    journal="rollback",
    open_samples=900,
    commits=40,
    write=Holds(300, 8, 0.9, 0.92),
    pins=(),
    frames=0,
    frames_now=0,
    hot_journal=True,
    processes=(
        replace(IMPORT, locks={WRITE: Holds(300, 8, 0.9, 0.92), PENDING: Holds(120, 8, 0.4, 0.42)}),
        replace(READER, locks={READ: Holds(800)}),
        Process(0, locks={READ: Holds(12)}),
    ),
    events=(Event(2.0, JOURNAL, "rollback"), Event(3.0, DELETED), Event(4.0, REPLACED)),
    course=Course(),
)
ALONE = replace(
    WATCH,
    open_samples=0,
    commits=None,
    frames=0,
    frames_now=0,
    pins=(),
    write=Holds(1000, 1, 10.0, 10.0, 0.0, 10.0),
    processes=(
        replace(IMPORT, locks={name: Holds(1000, 1, 10.0, 10.0, 0.0, 10.0) for name in (WRITE, EXCLUSIVE)}),
    ),
)
NOBODY = Watch("app.db", Watching(), seconds=10.0, samples=1000, openers=0)
LOSING = replace(WATCH, processes=(replace(WORKER, wal=DELETED_WAL, name="app.db", writes=True), IMPORT))


def watch_report(watch: Watch = WATCH) -> Report:
    """Return a report of a watch."""
    return replace(corpus_report("watch"), results={"watch": watch})


SHOWN = {
    "watch": (WATCH, 0),
    "watch-too-long": (TOO_LONG, 1),
    "watch-rollback": (OLD, 0),
    "watch-alone": (ALONE, 0),
}


@pytest.mark.parametrize("name", SHOWN)
def test_watch_matches_its_golden_file(name: str) -> None:
    watch, code = SHOWN[name]
    report = watch_report(watch)
    assert_golden(f"{name}.txt", report_text(report))
    assert exit_code(endings(report)) == code


def codes(watch: Watch) -> list[str]:
    return [conclusion(watch).finding.code, *(finding.code for finding in findings(watch))]


def test_database_without_open_processes_is_no_failure() -> None:
    assert codes(NOBODY) == ["watch-unlocked"]
    assert conclusion(NOBODY).finding.text == "No process had app.db open."
    assert exit_code(endings(watch_report(NOBODY))) == 0


def test_open_files_decide_whether_a_process_has_the_database_open() -> None:
    texts = [
        conclusion(watch).finding.text
        for watch in (replace(NOBODY, openers=2), replace(NOBODY, openers=None), replace(NOBODY, hidden=3))
    ]
    assert texts == [
        "No lock was seen. 2 processes had the database open.",
        "No lock was seen on app.db.",
        "No lock was seen on app.db. The open files of 3 processes cannot be read: run sqlstress watch as "
        "root.",
    ]


def test_deleted_wal_is_the_first_finding_and_a_failure_if_written() -> None:
    assert codes(LOSING)[0] == "watch-deleted-wal"
    assert exit_code(endings(watch_report(LOSING))) == 1
    text = " ".join(report_text(watch_report(LOSING)).split())
    assert "FAILED: process 2600 (gunicorn: worker [shop]) is writing into a deleted WAL" in text
    assert "is writing into another WAL" in now_line(replace(LOSING, processes=LOSING.processes[:1]))
    only_open = replace(LOSING, processes=(replace(LOSING.processes[0], writes=False), IMPORT))
    assert codes(only_open)[0] == "watch-held" and codes(only_open)[1] == "watch-deleted-wal"
    assert exit_code(endings(watch_report(only_open))) == 0


def test_replaced_file_is_the_cause_of_a_deleted_wal() -> None:
    replaced = replace(LOSING, events=(Event(at_s=2.8, what=REPLACED),))
    text, usual = (" ".join(report_text(watch_report(watch)).split()) for watch in (replaced, LOSING))
    assert "another file took the place of the database after 2.8 s" in text
    assert "Usual causes" not in text and "Usual causes" in usual


def test_users_of_a_replaced_file_have_no_other_name() -> None:
    other = replace(IMPORT, wal=OTHER_WAL, name="/srv/shop/app.db")
    watch = replace(WATCH, processes=(other,))
    assert "watch-other-wal" in codes(watch)
    assert "watch-other-wal" not in codes(replace(watch, events=(Event(at_s=2.8, what=REPLACED),)))


def test_file_with_several_names_is_a_finding() -> None:
    assert "watch-names" in codes(replace(WATCH, links=2))
    assert "watch-names" in codes(replace(WATCH, is_mount=True))
    assert "watch-names" not in codes(WATCH)


def test_sqlite_of_each_process_is_listed_with_warnings() -> None:
    new, old = MappedSqlite("3.51.3", "/usr/lib/libsqlite3.so.0"), MappedSqlite("3.40.1", "/x/apsw.so", True)
    users = (replace(IMPORT, sqlite=(new, old)), replace(WORKER, sqlite=(new,)))
    text = " ".join(report_text(watch_report(replace(WATCH, processes=users))).split())
    assert f"SQLite: 3.51.3 ({IMPORT.pid}, {WORKER.pid}); 3.40.1 ({IMPORT.pid})." in text
    assert "Warning: SQLite 3.40.1 can lose commits (WAL-reset bug)." in text
    assert f"Warning: process {IMPORT.pid}" in text
    assert "has mapped 2 SQLite libraries (libsqlite3.so.0 and apsw.so)" in text
    assert "Warning" not in report_text(watch_report(replace(WATCH, processes=users[1:])))


def test_wal_figures_are_of_one_moment() -> None:
    burst = replace(WATCH, frames=9143, frames_now=744, checkpointed=744, wal_bytes_now=37_700_000)
    text = " ".join(report_text(watch_report(burst)).split())
    assert "WAL at the end: 744 live frames (3.1 MB), 100% of them checkpointed; file size 38 MB." in text
    assert "At most 9,143 live frames" in text
    assert "WAL 744 frames, 744 checkpointed" in now_line(burst)


def test_commits_between_the_samples_are_reported() -> None:
    idle = replace(NOBODY, open_samples=1000, commits=12)
    assert "12 commits" in report_text(watch_report(idle))


def test_processes_of_one_program_are_named_as_joint_holders() -> None:
    some = tuple(
        replace(WORKER, pid=pid, command=("python3", "add.py", str(pid)), locks={WRITE: Holds(300, 9)})
        for pid in (1, 2, 3)
    )
    assert "watch-crowd" in codes(replace(WATCH, processes=some))
    assert "watch-crowd" not in codes(replace(WATCH, processes=some[:1]))
    assert "watch-crowd" not in codes(replace(WATCH, processes=(*some[:1], WORKER)))
    alone = replace(some[0], locks={WRITE: Holds(600, 9)})
    assert "watch-crowd" not in codes(replace(WATCH, processes=(alone, *some[1:])))


def test_frequent_short_holds_differ_from_a_long_hold() -> None:
    often = replace(WORKER, locks={WRITE: Holds(900, 900, 0.0, 0.02)})
    assert "watch-often" in codes(replace(WATCH, processes=(often,)))
    assert "long-write" in codes(WATCH) and "watch-often" not in codes(WATCH)


def held_with(
    cpu_s: float, written: int | None, disk_share: float = 0.0, running_share: float = 0.0
) -> Watch:
    """Return a watch whose first process held the write lock for 5 s and used the machine so."""
    usage = HoldUsage(4.9, cpu_s, written, disk_share, running_share)
    process = replace(IMPORT, usage=usage, locks={WRITE: Holds(500, 1, 5.0, 5.02)})
    return replace(WATCH, write=Holds(500, 1, 5.0, 5.02), processes=(process,), pins=())


def test_long_hold_of_an_idle_process_names_the_wait_as_the_cause() -> None:
    idle = held_with(0.02, 0)
    (text,) = (finding.text for finding in findings(idle) if finding.code == "long-write")
    assert "It used 0.41% of a processor and wrote nothing to the disk in this time" in text
    assert text.endswith("Do that before BEGIN, or after COMMIT.")
    assert "watch-gaps" not in codes(idle)
    assert "compute before BEGIN" in "".join(f.text for f in findings(held_with(2, 0, 0.0, 0.9)))
    (text,) = (f.text for f in findings(held_with(4.8, None)) if f.code == "long-write")
    assert "It used 98% of a processor in this time: compute before BEGIN" in text


@pytest.mark.parametrize(
    "watch",
    [held_with(0.02, 50_000_000), held_with(0.02, 0, 0.9), held_with(2.5, 0)],
    ids=["writes", "waits for the disk", "half busy"],
)
def test_long_hold_of_a_writing_process_has_no_further_cause(watch: Watch) -> None:
    (text,) = (finding.text for finding in findings(watch) if finding.code == "long-write")
    assert text.endswith('get "database is locked".') and "watch-gaps" in codes(watch)


def test_many_commits_exclude_a_large_transaction_as_the_cause_of_a_wal() -> None:
    steps, jump = Course(0.1, (10,) * 90, {}, tuple(range(0, 27_000, 300))), Course(frames=(900, 900, 25_186))
    grown = replace(
        WATCH,
        frames=25_186,
        frames_now=25_186,
        wal_bytes_now=104_000_000,
        commits=1812,
        checkpointed=0,
        pins=(),
        course=steps,
    )
    (text,) = (f.text for f in findings(grown) if f.code == "watch-wal")
    assert "1,812 commits began no checkpoint: automatic checkpoints are off" in text
    assert "a transaction was large" not in text
    (text,) = (f.text for f in findings(replace(grown, course=jump)) if f.code == "watch-wal")
    assert "a transaction was large" in text


def test_checkpoint_that_waits_with_the_write_lock_is_named() -> None:
    waits = {WRITE: Holds(200, 1, 2.0, 2.02, 1.0), CHECKPOINT: Holds(200, 1, 2.0, 2.02, 1.0)}
    found = codes(replace(WATCH, processes=(replace(IMPORT, locks=waits),)))
    assert "watch-blocking-checkpoint" in found and "long-write" not in found


def test_watch_ended_early_shows_the_reason_and_exits_4() -> None:
    report = watch_report(replace(WATCH, error="cannot read app.db: Permission denied."))
    assert exit_code(endings(report)) == 4
    assert "Permission denied" in report_text(report)


def test_thousand_processes_are_counted_and_the_first_are_shown() -> None:
    many = replace(WATCH, processes=(IMPORT,) * 1000, others=5)
    text = report_text(watch_report(many))
    assert text.count("import_orders") < 2 * MOST_ROWS
    assert f"not in the table: {1005 - MOST_ROWS} processes that held" in " ".join(text.split())


def test_current_state_is_a_page_or_a_line() -> None:
    line = now_line(WATCH)
    assert "\n" not in line
    assert all(
        part in line for part in ("10.0s", "2598", "holds the write lock for 1.2 s", "pinned", "8,231")
    )
    assert "app.db" in now_line(NOBODY)
    page = now_page(WATCH).splitlines()
    assert max(map(len, page)) <= WIDTH and any("import_orders" in row for row in page)


def test_page_draws_the_locks_and_the_wal_over_time() -> None:
    page = FORMATS["html"](watch_report())
    assert "As time went on" in page and "2598 python3.11 manage.py import_orders" in page


@given(watches)
@settings(max_examples=examples(0.3))
def test_any_watch_is_shown_in_every_format_within_80_columns(watch: Watch) -> None:
    report = watch_report(watch)
    assert max(map(len, report_text(report).splitlines())) <= WIDTH
    assert all(FORMATS[form](report) for form in DOCUMENTS)
    assert "\n" not in now_line(watch)
