"""What is recorded of scripts on a real database, what it proves, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sqlstress.engine.protocols import Outcome
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.sql.anomalies import TRIED
from sqlstress.experiments.sql.expressions import Variables
from sqlstress.experiments.sql.history import (
    READ,
    UNDONE,
    WRITE,
    HistoryRecorder,
    Record,
    is_one_transaction,
)
from sqlstress.experiments.sql.script import Sql, read, statements
from sqlstress.experiments.sql.work import SqlWork, examine
from sqlstress.experiments.sql.worker import SqlSource
from sqlstress.report import Check
from sqlstress.report.results import Sighting
from tests.example_report import assert_golden_texts
from tests.experiments.sql.databases import Open, case_of, done, source_of
from tests.pulses import nothing

ROWS = """CREATE TABLE place (id INTEGER PRIMARY KEY, version BIGINT NOT NULL);
INSERT INTO place VALUES (1, 1), (2, 1);
"""
SEE = "-- @history place\nSELECT id, version FROM place WHERE id = {};\n"
SET = "-- @history place\nUPDATE place SET version = version + 1 WHERE id = {} RETURNING id, version;\n"
READ_1, READ_2, WRITE_1, WRITE_2 = (text.format(row) for text in (SEE, SET) for row in (1, 2))
SLEEP = "\\sleep 1 ms\n"

Meet = Callable[..., tuple[SqlWork, list[SqlSource]]]


@pytest.fixture
def meet(start: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Meet:
    """Return what runs a script in two processes: while the first one sleeps, the second runs all of it."""
    setup = tmp_path / "rows.sql"
    setup.write_text(ROWS)
    others: list[SqlSource] = []
    monkeypatch.setattr(SqlSource, "sleep", lambda self, _: _run(others.pop(), -1) if others else None)

    def meet(*scripts: str, **options: str) -> tuple[SqlWork, list[SqlSource]]:
        texts = {f"{name}.sql": text for name, text in zip("ab", scripts, strict=False)}
        work, first = start(texts, **{"setup": str(setup), "busy_timeout": "0", **options})
        second = source_of(work, tmp_path, 2)
        others.append(second)
        _run(first, 0)
        return work, [first, second]

    return meet


def _run(source: SqlSource, script: int) -> None:
    try:
        source.calls[script](*source.prepared([script % len(source.calls)]))
    except Exception as error:
        assert source.was_busy(error)


def proved(work: SqlWork, sources: Sequence[SqlSource]) -> tuple[Check, dict[str, Sighting]]:
    """Return the check of a history, and what was seen in it by its kind."""
    outcomes = [Outcome(worker, False, source.findings()) for worker, source in enumerate(sources, 1)]
    (check,) = [one for one in work.verify(outcomes, nothing).checks if one.name == "history"]
    assert work._history
    for source in sources:
        source.close()
    return check, {one.what: one for one in work._history.sightings}


def test_what_is_read_before_the_transaction_loses_an_update_and_the_witnesses_are_named(meet: Meet) -> None:
    check, seen = proved(*meet(f"{READ_1}{SLEEP}BEGIN IMMEDIATE;\n{WRITE_1}COMMIT;"))
    # SQLite has done what it promises.
    assert (check.status, check.checked, check.problems) == ("skipped", 2, 0)
    lost = seen.pop("lost-update")
    assert {name: lost.traits[name] for name in ("isolation", "row 1", "versions 1", "versions 2")} == {
        "isolation": "",
        "row 1": "place 1",
        "versions 1": "1 2",
        "versions 2": "2 3",
    }
    assert lost.traits["T1"] == "a.sql, run 1 of process 1"
    assert lost.traits["T2"] == "a.sql, run 1 of process 2"
    assert (lost.traits["step 1"], lost.traits["step 2"]) == ("rw T1 T2", "ww T2 T1")
    assert {what: one.traits for what, one in seen.items()} == {TRIED: {"rows": "1", "accesses": "4"}}


def test_in_one_transaction_sqlite_lets_nothing_happen(meet: Meet) -> None:
    reads = f"BEGIN;\n{READ_1}{SLEEP}{READ_2}COMMIT;"
    check, seen = proved(*meet(reads, f"BEGIN IMMEDIATE;\n{READ_1}{WRITE_1}{WRITE_2}COMMIT;"))
    assert (check.status, check.checked) == ("ok", 2) and list(seen) == [TRIED]


def test_two_reads_without_a_transaction_are_a_read_skew(meet: Meet) -> None:
    _, seen = proved(*meet(f"{READ_1}{SLEEP}{READ_2}", f"BEGIN IMMEDIATE;\n{WRITE_1}{WRITE_2}COMMIT;"))
    assert set(seen) == {TRIED, "read-skew"}


def test_what_a_lock_kept_from_being_committed_is_recorded_as_undone(meet: Meet) -> None:
    write = f"BEGIN IMMEDIATE;\n{READ_1}{WRITE_1}COMMIT;"
    work, sources = meet(f"BEGIN;\n{READ_1}{SLEEP}COMMIT;", write, journal_mode="delete")
    recorded: Record = sources[1].findings().history
    assert [one.accesses for one in recorded.runs] == [[(UNDONE, ("place", 1), 2)]]
    check, seen = proved(work, sources)
    assert (check.status, check.checked) == ("ok", 1) and list(seen) == [TRIED]


@pytest.mark.parametrize(("value", "shown"), [("'x'", "1, 'x'"), ("NULL", "1, None"), ("1.5", "1, 1.5")])
def test_a_version_that_is_no_whole_number_ends_the_worker_with_its_place(
    start: Open, value: str, shown: str
) -> None:
    _, source = start(f"-- @history account\nSELECT id, {value} FROM account WHERE id = 1;")
    with pytest.raises(EnvironmentFailure, match=f"a.sql:2:1: a history needs a key and .*, not {shown}"):
        done(source, 1)


@pytest.mark.parametrize(
    ("text", "verify"),
    [("SELECT 1;", "quick"), ("-- @history account\nSELECT id, id FROM account;", "none")],
)
def test_nothing_is_recorded_where_nothing_is_verified_or_marked(start: Open, text: str, verify: str) -> None:
    _, source = start(text, verify=verify)
    assert source.findings().history is None


# The recorder by itself.


class Database:
    """Says whether a transaction is open, and returns rows to whom it is told."""

    def __init__(self, most: int = 100) -> None:
        self.is_open = False
        self.recorder = HistoryRecorder(most, lambda: self.is_open)
        self.versions = {1: 1, 2: 1}

    def step(self, sql: Sql) -> None:
        one = sql.statement
        row = 2 if "2" in one.text else 1
        self.versions[row] += one.verb == "update"
        if see := self.recorder.seen(sql):
            see([(row, self.versions[row])])

        def run(_: Variables) -> None:
            self.is_open = one.begins or (self.is_open and not one.ends)

        self.recorder.ending(sql, run)({})

    def run(self, text: str, fails: bool = False) -> None:
        def once(_: Variables) -> None:
            for sql in statements(read("a.sql", text).commands):
                self.step(sql)
            if fails:
                raise ValueError

        try:
            self.recorder.run(0, once)({})
        except ValueError:
            self.is_open = False

    def accesses(self) -> list[tuple[int, int, int]]:
        runs = self.recorder.recorded().runs
        return [(kind, key, version) for one in runs for kind, (_, key), version in one.accesses]


@pytest.mark.parametrize(
    ("text", "fails", "expected"),
    [
        (f"BEGIN;{READ_1}{WRITE_1}COMMIT;", False, [(READ, 1, 1), (WRITE, 1, 2)]),
        (f"BEGIN;{READ_1}{WRITE_1}{WRITE_2}ROLLBACK;", False, [(UNDONE, 1, 2), (UNDONE, 2, 2)]),
        (f"BEGIN;{READ_1}{WRITE_1}", True, [(UNDONE, 1, 2)]),
        (f"{WRITE_1}{READ_2}BEGIN;{WRITE_2}", True, [(WRITE, 1, 2), (READ, 2, 1), (UNDONE, 2, 2)]),
        (f"BEGIN;{WRITE_1}COMMIT;BEGIN;{WRITE_1}", True, [(WRITE, 1, 2), (UNDONE, 1, 3)]),
        ("SELECT 1;", False, []),
    ],
)
def test_what_a_run_has_undone_nobody_may_see_and_what_it_committed_stays(
    text: str, fails: bool, expected: list[tuple[int, int, int]]
) -> None:
    database = Database()
    database.run(f"BEGIN;{READ_2}{READ_2}COMMIT;")  # nothing that comes later changes it
    database.run(text, fails)
    assert database.accesses() == [(READ, 2, 1), (READ, 2, 1), *expected]


def test_when_the_room_is_full_whole_runs_are_kept_and_no_further_one() -> None:
    database = Database(most=3)
    for _ in range(4):
        database.run(f"BEGIN;{READ_1}{WRITE_1}COMMIT;")
    assert len(database.accesses()) == 4
    recorded = database.recorder.recorded()
    assert recorded.stopped and [one.number for one in recorded.runs] == [1, 2]
    check, _ = examine({1: recorded}, ["a.sql"], "serializable", 1, nothing)
    assert check.status == "ok" and check.checked == 2 and "no more" in check.note


# What it proves.


def recorded(text: str) -> Record:
    """Return the record of a run: "r11 w12" reads version 1 of row 1, and writes version 2."""
    recorder = HistoryRecorder(100, lambda: False)

    def once(_: Variables) -> None:
        for word in text.split():
            (sql,) = statements(read("a.sql", READ_1 if word[0] == "r" else WRITE_1).commands)
            see = recorder.seen(sql)
            assert see
            see([(int(word[1]), int(word[2]))])

    recorder.run(0, once)({})
    (run,) = recorder.recorded().runs
    return Record([run._replace(begin_ns=0, end_ns=1)], False)  # at the same time as all others


@pytest.mark.parametrize(
    ("one", "other", "failing"),
    [
        ("r11 r21 w12", "r11 r21 w22", ["serializable"]),  # write skew
        ("r11 w13", "r11 w12", ["serializable", "repeatable-read"]),  # a lost update
        ("r11 w12", "r11 w12", ["serializable", "repeatable-read", "read-committed"]),  # a version twice
    ],
)
def test_an_anomaly_fails_where_the_isolation_level_prevents_it(
    one: str, other: str, failing: list[str]
) -> None:
    histories = {1: recorded(one), 2: recorded(other)}
    for level in ("serializable", "repeatable-read", "read-committed", ""):
        check, sightings = examine(histories, ["a.sql"], level, 2, nothing)
        assert check.status == ("failed" if level in failing else "skipped")
        assert check.problems == (level in failing) and check.checked == 2
        assert len(sightings) == 2 and sightings[1].count == 1


def test_of_a_process_that_ended_early_it_is_not_known_what_it_wrote() -> None:
    check, _ = examine({1: recorded("r11 w12")}, ["a.sql"], "serializable", 2, nothing)
    assert check.status == "ok" and "ended early" in check.note
    nobody, _ = examine({}, ["a.sql"], "serializable", 2, nothing)
    assert nobody.status == "skipped"


# What is refused, and what is one transaction.


UNRECORDED = [
    "-- @history\nSELECT id, balance FROM account;",
    "-- @history seen\nSELECT id, id FROM account;",
    "-- @history account\nUPDATE account SET balance = 1;",
    "-- @history account\nDELETE FROM account RETURNING id, balance;",
    f"{READ_1}UPDATE place SET version = 7;",
    f"{READ_1}update Place SET version = 7;",
    f"{READ_1}SAVEPOINT a;",
]


def test_what_can_not_be_recorded_is_refused_with_its_place(tmp_path: Path) -> None:
    found = {}
    for script in UNRECORDED:
        with pytest.raises(UsageError) as caught:
            case_of(tmp_path, {"a.sql": script})
        found[repr(script)] = str(caught.value).removeprefix(str(tmp_path)).lstrip("/\\")
    assert_golden_texts("history-refused.txt", found)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (READ_1, True),
        (f"BEGIN;{READ_1}{WRITE_1}COMMIT;", True),
        (f"\\set x 1\n\\if :x = 1\nBEGIN;\n\\else\nBEGIN IMMEDIATE;\n\\endif\n{READ_1}COMMIT;", True),
        (f"BEGIN;{READ_1}ROLLBACK;", True),
        (f"{READ_1}{READ_2}", False),
        (f"{READ_1}BEGIN;{WRITE_1}COMMIT;", False),
        (f"BEGIN;{WRITE_1}COMMIT;{READ_1}", False),
        (f"BEGIN;{READ_1}COMMIT;BEGIN;{WRITE_1}COMMIT;", False),
        (f"\\set x 1\n\\if :x = 1\nBEGIN;\n\\endif\n{READ_1}{WRITE_1}", False),
    ],
)
def test_whether_a_script_is_one_transaction_is_seen_on_all_its_ways(script: str, expected: bool) -> None:
    assert is_one_transaction(read("a.sql", script)) is expected
