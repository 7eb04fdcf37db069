"""The times and the statements of failed operations, as both loops record them."""

import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import sqlstress
from sqlstress.analysis.causes import diagnose
from sqlstress.engine.loop import FOREVER_NS, Window, work_through
from sqlstress.engine.protocols import Findings
from sqlstress.experiments.kv.spec import Load
from sqlstress.recording import FAILED_STATEMENT
from sqlstress.recording.failure_facts import facts_of
from sqlstress.report.case import Case, Settings
from tests.experiments.kv.dry import SALT
from tests.experiments.kv.loops import LOOPS
from tests.halves import open_source, open_work
from tests.pulses import nothing


@pytest.mark.parametrize("loop", ["native", "python"])
def test_failures_have_a_time_for_each_failed_operation(tmp_path: Path, loop: str) -> None:
    report = sqlstress.measure(
        directory=tmp_path,
        loop=loop,
        concurrency=4,
        buckets=1,
        duration="200ms",
        repeat=1,
        read_ratio=0,
        busy_timeout="1ms",
        max_failed="100%",
    )
    (trial,) = report.runs[0].trials
    assert trial.failed == sum(each.latency.count for each in trial.failures)
    assert all(each.latency.max_ns > 0 for each in trial.failures)
    assert all(
        sum(count for _, count in each.latency.buckets) == each.latency.count for each in trial.failures
    )


HELD = Settings(busy_timeout_ms=100)
UPDATES = Load(read_ratio=0, update_ratio=1, begin="deferred", key_space=100)
BATCHES = Load(read_ratio=0, batch=5, begin="immediate", key_space=100)
OPERATIONS = 3
FIRST_READ = "SELECT count(*) FROM kv"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("load", "settings", "lock", "failed", "cause"),
    [
        (
            Load(read_ratio=0, key_space=100),
            Settings(busy_timeout_ms=0),
            ["BEGIN IMMEDIATE"],
            ("REPLACE INTO kv (key, value) VALUES (?, ?)", "none", ""),
            "no-timeout",
        ),
        (
            UPDATES,
            HELD,
            ["BEGIN IMMEDIATE"],
            ("UPDATE counter SET n = ? WHERE id = ?", "read", "BEGIN DEFERRED"),
            "read-before-write",
        ),
        (BATCHES, HELD, ["BEGIN IMMEDIATE"], ("BEGIN IMMEDIATE", "none", ""), "held-longer"),
        (
            BATCHES,
            replace(HELD, journal_mode="delete"),
            ["BEGIN", FIRST_READ],
            ("COMMIT", "written", "BEGIN IMMEDIATE"),
            "commit-behind-reader",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_failed_statement_has_its_facts_and_cause(
    loop: str,
    load: Load,
    settings: Settings,
    lock: list[str],
    failed: tuple[str, str, str],
    cause: str,
    tmp_path: Path,
) -> None:
    case = Case(spec=replace(load, loop=loop), settings=settings)
    with failed_operations(case, tmp_path, lock) as findings:
        ((topic, sql, count, _, traits),) = findings.sightings
    assert (topic, (sql, traits["transaction"], traits["began"])) == (FAILED_STATEMENT, failed)
    assert count >= OPERATIONS  # Transactions of several statements are retried.
    assert (traits["timeout_ms"], traits["journal"]) == (str(settings.busy_timeout_ms), settings.journal_mode)
    waited_ms = float(traits["waited_ms"])
    assert waited_ms <= float(traits["longest_ms"])
    diagnosis = diagnose(int(traits["code"]), facts_of(traits, waited_ms, settings.busy_timeout_ms))
    assert diagnosis.cause and diagnosis.cause.name == cause


@pytest.mark.parametrize("loop", LOOPS)
def test_load_without_failures_has_no_failed_statements(loop: str, tmp_path: Path) -> None:
    with failed_operations(Case(spec=replace(UPDATES, loop=loop)), tmp_path, []) as findings:
        assert findings.sightings == []


@contextmanager
def failed_operations(case: Case, folder: Path, lock: list[str]) -> Iterator[Findings]:
    """Run some operations of a worker while another connection has run the statements `lock`."""
    work = open_work(case, folder, SALT, {})
    work.share(nothing)
    work.prepare(nothing)
    source = open_source(case, folder, 1, SALT, work.shared)
    with closing(sqlite3.connect(next(folder.rglob("*.db")), isolation_level=None)) as holder:
        for sql in lock:
            holder.execute(sql).fetchall()
        words = array("q", [0])
        work_through(source, Window(0, 0, FOREVER_NS), OPERATIONS, words, array("q", [0]))
        assert words[0] == (0 if lock else OPERATIONS)
        yield source.findings()
    source.close()
    work.release()
