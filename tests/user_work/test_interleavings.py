"""The search for the step after which a check fails: programs that are wrong alone, or only in some order."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sqlstress.experiments.app.worker import open_calls
from sqlstress.plan import cases_of
from sqlstress.races.suspicions import STALE
from sqlstress.races.traced_statements import TracedStatement
from sqlstress.report.case import Case
from sqlstress.report.results import Sighting
from sqlstress.targets import open_place
from sqlstress.user_work import ALONE, BETWEEN, HALF, IN_TURN, ORDERS, SUSPICION, interleavings
from sqlstress.user_work.interleavings import (
    MIN_ORDERS,
    SearchResult,
    _Place,
    _Search,
    _Stage,
    search_interleavings,
    with_orders,
)
from sqlstress.user_work.options import Invariant
from sqlstress.user_work.rehearsal import Files, content, write_folder
from tests.own_app import findings_of, line_of, measured

SETUP = (
    "PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (0); CREATE TABLE log (n)"
)
HEAD = f"""
import sqlite3, time
from sqlstress import check, connect, setup, transaction

@setup
def make(path):
    c = sqlite3.connect(path)
    c.executescript("{SETUP}")
    c.close()

@connect
def opened(path):
    return sqlite3.connect(path, isolation_level=None, timeout=10)

@check
def each_is_logged(query):
    assert query("SELECT n FROM t") == query("SELECT count(*) FROM log")

def add(c, n):
    c.execute("UPDATE t SET n = ?", (n,))
    c.execute("INSERT INTO log VALUES (1)")
"""
RIGHT = """
@transaction
def order(c):
    c.execute("BEGIN IMMEDIATE")
    add(c, c.execute("SELECT n FROM t").fetchone()[0] + 1)
    c.execute("COMMIT")
"""
FORGETS = f"""{RIGHT}
@transaction
def forgets(c):
    c.execute("UPDATE t SET n = n + 1")
"""
TWO_COMMITS = """
@transaction
def order(c):
    c.execute("UPDATE t SET n = n + 1")
    c.execute("INSERT INTO log VALUES (1)")
"""
READS_BEFORE = """
@transaction
def order(c):
    n = c.execute("SELECT n FROM t").fetchone()[0]
    c.execute("BEGIN IMMEDIATE")
    add(c, n + 1)
    c.execute("COMMIT")
"""
KEEPS_VALUE = """
last = [0]
@transaction
def order(c):
    c.execute("BEGIN IMMEDIATE")
    last[0] += 1
    add(c, last[0])
    c.execute("COMMIT")
"""
TIME_BEFORE = """
@transaction
def order(c):
    at = time.time_ns()
    c.execute("BEGIN IMMEDIATE")
    (late,) = c.execute("SELECT count(*) FROM log WHERE n > ?", (at,)).fetchone()
    c.execute("INSERT INTO log VALUES (?)", (at,))
    c.execute("UPDATE t SET n = n + 1 + ?", (late,))
    c.execute("COMMIT")
"""
PASSES_OVER = """
def later(c):
    return c.execute("SELECT coalesce(max(at), 0) + 1 FROM event").fetchone()[0]

@transaction
def post(c):
    c.execute("CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, at, seen DEFAULT 0)")
    at = later(c)
    c.execute("BEGIN IMMEDIATE")
    if at < later(c):
        at = -1
    c.execute("INSERT INTO event (at) VALUES (?)", (at,))
    c.execute("COMMIT")

@transaction
def deliver(c):
    c.execute("CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, at, seen DEFAULT 0)")
    c.execute("BEGIN IMMEDIATE")
    c.execute("UPDATE event SET seen = 1 WHERE at > 0")
    late = c.execute("SELECT 1 FROM event WHERE at < 0").fetchone()
    c.execute("UPDATE t SET n = ?", (1 if late else 0,))
    c.execute("COMMIT")
"""
FAILS_SOMETIMES = """
import random
@transaction
def order(c):
    n = c.execute("SELECT n FROM t").fetchone()[0]
    c.execute("BEGIN IMMEDIATE")
    if random.random() < 0.1:
        c.execute("UPDATE t SET n = n + 1")
    c.execute("COMMIT")
"""
HANGS = RIGHT.replace('c.execute("COMMIT")', "time.sleep(60)")


@pytest.fixture(autouse=True)
def time_to_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit only the parts of the search that find nothing in most programs."""
    limits = {"ALONE_S": 0.3, "TURNS_S": 0.3, "PAUSES_S": 60.0, "CONFIRM_S": 5.0, "CONTROL_S": 60.0}
    for name, limit_s in limits.items():
        monkeypatch.setattr(interleavings, name, limit_s)


def search(folder: Path, text: str) -> SearchResult:
    """Return the result of a search in an application with this text."""
    (folder / "own.py").write_text(text, encoding="utf-8")
    case = cases_of({"file": str(folder / "own.py"), "concurrency": 2, "seed": 1}, "app")[0]
    where = folder / "trial-data"
    where.mkdir()
    path = open_place(case, where).paths[0]  # type: ignore[attr-defined]
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SETUP)
    found = search_interleavings(case, content(where), where, open_calls, lambda: None)
    assert [item.name for item in where.iterdir()] == [path.name]
    return found


@pytest.mark.parametrize(
    ("program", "kind", "transaction", "first", "then"),
    [
        (FORGETS, ALONE, "forgets", "UPDATE t SET n = n + 1", "UPDATE t SET n = n + 1"),
        (TWO_COMMITS, HALF, "order", "UPDATE t SET n = n + 1", "INSERT INTO log"),
        (READS_BEFORE, BETWEEN, "order", "SELECT n FROM t", "UPDATE t SET n ="),
        (TIME_BEFORE, BETWEEN, "order", "", "SELECT count(*) FROM log"),
        (KEEPS_VALUE, IN_TURN, "order", "UPDATE t SET n =", "INSERT INTO log"),
    ],
    ids=["alone", "half", "between", "time_before", "kept_value"],
)
def test_step_is_found(
    program: str,
    kind: str,
    transaction: str,
    first: str,
    then: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if kind in (ALONE, IN_TURN):
        monkeypatch.setattr(interleavings, "ALONE_S" if kind == ALONE else "TURNS_S", 60.0)
    found = search(tmp_path, HEAD + program).found
    assert found
    traits = found.traits
    assert (found.what, traits["transaction"], traits["check"]) == (kind, transaction, "each_is_logged")
    assert traits["first"].startswith(first) and bool(traits["first"]) == bool(first)
    assert traits["then"].startswith(then) and traits["then_at"].startswith("own.py:")
    assert bool(traits["others"]) == (kind == BETWEEN)


def test_pause_without_time_for_enough_calls_in_turn_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interleavings, "ALONE_S", 0.0)
    monkeypatch.setattr(interleavings, "CONTROL_S", 0.0)
    monkeypatch.setattr(interleavings, "CONTROLS", 1_000_000)
    assert search(tmp_path, HEAD + READS_BEFORE) == SearchResult()


def test_call_that_did_not_pause_is_no_result_unless_calls_in_turn_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hold(stage: _Stage, transaction: str, limit_s: float, most: int) -> None:
        stage.calls = most

    monkeypatch.setattr(interleavings, "ALONE_S", 0.0)
    monkeypatch.setattr(interleavings, "TURNS_S", 0.0)
    monkeypatch.setattr(_Stage, "first_calls", lambda stage: None)
    monkeypatch.setattr(_Stage, "calls_without_pause", hold)
    monkeypatch.setattr(_Stage, "places", lambda stage: [_Place("order", 99)])
    assert search(tmp_path, HEAD + FAILS_SOMETIMES) == SearchResult()


def test_damage_that_shows_after_a_later_call_is_due_to_the_pause(tmp_path: Path) -> None:
    found = search(tmp_path, HEAD + PASSES_OVER).found
    assert found and (found.what, found.traits["transaction"]) == (BETWEEN, "post")
    assert found.traits["first"].startswith("SELECT coalesce(max(at)")


def test_calls_without_pause_have_the_share_of_calls_with_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def note(stage: _Stage, process: object, kind: str, name: str) -> None:
        names.append(name)
        stage.calls += 1

    stage = object.__new__(_Stage)
    others = [f"other {number}" for number in range(99)]
    vars(stage).update(calls=0, _first=1, _second=2, _random=Random(1))
    vars(stage)["_pauses"] = {name: set[int]() for name in ("order", *others)}
    monkeypatch.setattr(_Stage, "_single_call", note)
    stage.calls_without_pause("order", 60.0, 2000)
    longest = 1 + interleavings.MAX_OTHERS + 2 * interleavings.MAX_IN_TURN
    assert 1 / longest < names.count("order") / len(names) < 1 / 3


def test_rare_fault_that_needs_no_pause_is_not_blamed_on_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interleavings, "ALONE_S", 0.0)
    monkeypatch.setattr(interleavings, "TURNS_S", 0.0)
    monkeypatch.setattr(_Stage, "first_calls", lambda stage: None)
    monkeypatch.setattr(_Stage, "places", lambda stage: [_Place("order", 0), _Place("order", 1)])
    found = search(tmp_path, HEAD + FAILS_SOMETIMES).found
    assert found and found.what == IN_TURN


EARLY_COMMIT = """
@transaction
def order(c):
    c.execute("BEGIN")
    c.execute("UPDATE t SET n = n + 1")
    c.commit()
    c.execute("INSERT INTO log VALUES (1)")
"""


def test_commit_within_the_work_is_named(tmp_path: Path) -> None:
    found = search(tmp_path, HEAD + EARLY_COMMIT).found
    assert found and found.what == HALF
    assert found.traits["committed_at"] == f"own.py:{line_of(HEAD + EARLY_COMMIT, '    c.commit')}"


def test_damage_that_lasts_is_no_half_done_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleavings, "ALONE_S", 0.0)
    monkeypatch.setattr(interleavings, "TURNS_S", 0.0)
    monkeypatch.setattr(_Stage, "first_calls", lambda stage: None)
    monkeypatch.setattr(_Stage, "places", lambda stage: [_Place("order", 1)])
    found = search(
        tmp_path,
        f"""{HEAD}
@transaction
def order(c):
    c.execute("UPDATE t SET n = n + 1")
    c.execute("SELECT 1").fetchall()
""",
    ).found
    assert found and found.what == IN_TURN


def test_pause_is_confirmed_on_files_that_calls_have_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Files] = []

    def keep(search: _Search, place: _Place, files: Files) -> tuple[None, int]:
        seen.append(files)
        return None, 0

    monkeypatch.setattr(_Search, "_confirmed", keep)
    assert search(tmp_path, HEAD + READS_BEFORE) == SearchResult()
    folder = write_folder(seen[0], tmp_path / "copy")
    assert folder
    with closing(sqlite3.connect(folder / min(seen[0]))) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() > (0,)


@pytest.mark.thorough
@pytest.mark.parametrize("program", [RIGHT, HANGS], ids=["right", "hangs"])
def test_right_program_or_one_that_hangs_has_no_step(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("PAUSES_S", "CALL_S"):
        monkeypatch.setattr(interleavings, limit, 1.0)
    result = search(tmp_path, HEAD + program)
    assert (result.found, bool(result.orders)) == (None, program == RIGHT)


def test_calls_that_wait_for_a_lock_of_the_program_end_after_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interleavings, "PAUSES_S", 1.0)
    locked = """
import fcntl, os
@transaction
def order(c):
    with open(os.environ["SQLSTRESS_DATABASE"] + ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        n = c.execute("SELECT n FROM t").fetchone()[0]
        c.execute("BEGIN IMMEDIATE")
        add(c, n + 1)
        c.execute("COMMIT")
"""
    pytest.importorskip("fcntl")
    result = search(tmp_path, HEAD + locked)
    # All calls wait at both places, before the SELECT and before BEGIN, so no further calls pause there.
    assert result == SearchResult(orders={"order": 2})


@pytest.mark.parametrize(
    ("transactions", "pauses"),
    [
        ([("BEGIN IMMEDIATE", 1), ("UPDATE t", 1), ("COMMIT", 1)], {0}),
        ([("SELECT 1", 1), ("BEGIN IMMEDIATE", 2), ("UPDATE t", 2), ("SELECT 1", 3)], {0, 1, 3}),
        ([("BEGIN", 1), ("SELECT 1", 1), ("UPDATE t", 1), ("COMMIT", 1)], {0, 1, 2}),
        ([("UPDATE t", number) for number in range(1, 99)], {*range(interleavings.MAX_PAUSES)}),
    ],
    ids=["immediate", "before_and_after", "deferred", "many"],
)
def test_pauses_are_where_the_call_has_no_write_lock(
    transactions: list[tuple[str, int]], pauses: set[int]
) -> None:
    statements = [TracedStatement(sql, "", transaction=number) for sql, number in transactions]
    assert interleavings._pauses_of(statements) == pauses


def test_only_sqlite_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        pytest.fail("a server is searched")

    monkeypatch.setattr(interleavings, "_Search", never)
    case = Case(driver="psycopg")
    assert search_interleavings(case, {"a": b""}, tmp_path, open_calls, lambda: None) == SearchResult()


SUSPECTED = Sighting(SUSPICION, STALE, 1, "", {"transaction": "order", "table": "T", "columns": "n, m"})


@pytest.mark.parametrize(
    ("orders", "check", "columns", "is_tested"),
    [
        (MIN_ORDERS, "SELECT sum(n) FROM t", "n", True),
        (MIN_ORDERS, "SELECT 1 FROM t", "", True),
        (MIN_ORDERS - 1, "SELECT sum(n) FROM t", "n", False),
        (MIN_ORDERS, "SELECT sum(m) FROM t", "n", False),
        (MIN_ORDERS, "SELECT sum(n) FROM u", "n", False),
        (MIN_ORDERS, "FILE:total", "n", True),
        (MIN_ORDERS, "FILE:other", "n", False),
        (MIN_ORDERS, "missing.py:total", "n", False),
    ],
)
def test_suspicion_is_tested_only_if_a_check_reads_what_it_writes(
    orders: int, check: str, columns: str, tmp_path: Path, *, is_tested: bool
) -> None:
    file = tmp_path / "own.py"
    file.write_text("def total(query): query('SELECT sum(n) FROM t')\ndef other(query): query('')\n")
    suspicion = replace(SUSPECTED, traits={**SUSPECTED.traits, "columns": columns})
    is_sql = check.startswith("SELECT")
    invariant = Invariant("total", check.replace("FILE", str(file)), check if is_sql else "")
    result = SearchResult(orders={"order": orders})
    (tested,) = with_orders([suspicion], [invariant], result)
    assert tested.traits.get(ORDERS) == (str(orders) if is_tested else None)
    final = replace(invariant, at_end=True)
    assert with_orders([suspicion], [final], result) == (suspicion,)


@pytest.mark.thorough
def test_report_names_the_step_or_the_suspicion_that_explains_it(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + FORGETS, ops=20)
    (finding,) = findings_of(report, "breaking-step")
    line = line_of(HEAD + FORGETS, 'c.execute("UPDATE t SET n = n + 1")')
    assert "forgets goes wrong without any overlap" in finding.text and f"(own.py:{line})" in finding.text
    report = measured(tmp_path, HEAD + READS_BEFORE, ops=50, concurrency=4)
    (finding,) = findings_of(report, "suspicion")
    assert finding.text.startswith("Cause of a lost update") and not findings_of(report, "breaking-step")
