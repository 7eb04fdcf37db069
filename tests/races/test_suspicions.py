"""Suspicions: the programs that raise one, its facts, and that a rehearsal leaves no trace."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sqlstress
from sqlstress.races.guards import common_depth
from sqlstress.races.program_races import TracedProgram, copies, repeated_calls, stale_copies
from sqlstress.races.suspicions import (
    DEFERRED,
    FORKED,
    FROM_MEMORY,
    GUARDED,
    KEPT_ID,
    MAYBE_GUARDED,
    MIXED,
    OFFSET_PAGES,
    SECOND_SAVE,
    STALE,
    STALE_COPY,
    suspicions,
)
from sqlstress.races.touched import searches_range
from sqlstress.races.traced_statements import DELETE, INSERT, TracedStatement, Write
from sqlstress.races.weak_checks import weak_checks
from sqlstress.recording.callers import StackEntry
from sqlstress.report.results import Sighting
from sqlstress.user_work import SUSPICION, rehearsal
from tests.own_app import findings_of, measured
from tests.pages import ROOT
from tests.races import racy_programs, weak_programs, web_programs
from tests.rows import thorough
from tests.run_python import run_python

TRACED = """
import json
import sys
from functools import partial
from pathlib import Path
from sqlstress.user_work import rehearsal
from sqlstress.races.suspicions import LOST_DATA, NEEDLESS_LOCK, NOTES_ONLY
from sqlstress.races.tracing import Tracer
tracer = Tracer()
tracer.start()
tracer.find_lines_in(Path("ROOT/tests/races"))
from tests.races.MODULE import PROGRAMS
calls = {name: partial(program, f"{name}.db") for name, program in PROGRAMS.items()}
found = {name: [] for name in calls}
often = {name: [rehearsal.traced(call, tracer) for _ in range(5)] for name, call in calls.items()}
sys.setprofile(None)  # what follows runs no statement, and takes ten times as long when it is traced
for one in rehearsal.sightings(often):
    if one.what in (*LOST_DATA, *NOTES_ONLY, NEEDLESS_LOCK):
        found[one.traits["transaction"]].append((one.traits["table"], one.traits["first_at"]))
print(json.dumps(found))
"""


def suspicious_lines(folder: Path, module: ModuleType) -> dict[str, list[tuple[str, str]]]:
    """Return table and line of each suspicion by program; one traced process runs all programs."""
    code = TRACED.replace("ROOT", ROOT.as_posix()).replace("MODULE", module.__name__.rpartition(".")[2])
    connection = sqlite3.connect(folder / "empty.db")
    connection.executescript(f"BEGIN; {module.SCHEMA}; COMMIT")
    connection.close()
    for name in module.PROGRAMS:
        shutil.copy(folder / "empty.db", folder / f"{name}.db")
    found: dict[str, list[tuple[str, str]]] = json.loads(run_python(folder, code))
    return found


@pytest.mark.parametrize("module", [racy_programs, thorough(weak_programs), thorough(web_programs)])
def test_only_wrong_programs_are_flagged_each_with_its_line(tmp_path: Path, module: ModuleType) -> None:
    found = suspicious_lines(tmp_path, module)
    assert {name for name, told in found.items() if told} == {
        name for name in module.PROGRAMS if name.endswith("wrong")
    }
    assert all(
        at.startswith(f"{module.__name__.rpartition('.')[2]}.py:")
        for told in found.values()
        for _, at in told
    )


# The rules, on made-up statements, whose places are "read" and "write".

TABLE, OTHER = ("a.db", "t"), ("a.db", "u")
READS = {TABLE: frozenset({"id", "n"})}
CLAIM = Write(OTHER, "update")
SETS = Write(TABLE, "update", frozenset({"n"}), wheres=frozenset({"id"}), keys=(frozenset({"id"}),))


def query(transaction: int = 1, **told: Any) -> TracedStatement:
    return TracedStatement(
        **{"sql": "SELECT", "at": "read", "transaction": transaction, "reads": READS, **told}
    )


def write(transaction: int = 2, what: Write = SETS, **told: Any) -> TracedStatement:
    return TracedStatement(
        **{"sql": "UPDATE", "at": "write", "transaction": transaction, "write": what, **told}
    )


def begin(sql: str) -> TracedStatement:
    return TracedStatement(sql, "begin", transaction=2)


@pytest.mark.parametrize(
    ("call", "codes"),
    [
        ([query(), write()], [STALE]),
        ([query(), query(2), write()], []),
        ([query(), write(snapshot=1)], []),
        ([query(snapshot=7), write(snapshot=1)], [STALE]),
        ([write(1), query(2)], []),
        ([query(reads={OTHER: frozenset("n")}), write()], []),
        ([query(), begin("BEGIN IMMEDIATE"), query(2), write()], []),
        ([begin("begin"), query(2), write()], [DEFERRED]),
        ([begin("BEGIN DEFERRED TRANSACTION"), write(), query(2), write()], []),
        ([begin("BEGIN IMMEDIATE"), begin("SAVEPOINT a"), query(2), write()], []),
        ([write(2, runner=1), write(2, runner=1)], []),
        ([write(2, runner=1), write(2, runner=2)], [MIXED]),
        ([query(forked=True)], [FORKED]),
        ([write(1, CLAIM), query(2), write(3)], [STALE]),
        ([write(1, CLAIM), query(2), write(3, sql="UPDATE t (SELECT", reads={OTHER: frozenset("n")})], []),
    ],
)
def test_suspicions_of_a_call(call: list[TracedStatement], codes: list[str]) -> None:
    assert [suspicion.code for suspicion in suspicions(call)] == codes


def test_suspicion_names_the_query_of_the_written_row() -> None:
    call = [query(sql="SELECT 7", at="7"), query(sql="SELECT 8", at="8"), write(sql="UPDATE 7")]
    (found,) = suspicions(call)
    assert (found.first.at, found.then.at) == ("7", "write")


def test_long_values_do_not_stop_the_search() -> None:
    image = f"x'{'ab' * 500_000}'"
    call = (query(sql=f"SELECT n FROM t WHERE b = {image}"), write(sql=f"UPDATE t SET n = 2, b = {image}"))
    (found,) = rehearsal.sightings({"draw": [call]})
    assert found.what == STALE


def test_copy_is_stale_if_its_source_was_read_outside_the_transaction() -> None:
    removes = Write(OTHER, "delete")
    pairs = copies([[write(), write(what=removes)], [write(1, Write(TABLE, "delete")), write(2, removes)]])
    assert pairs == {(TABLE, OTHER)}
    copied = write(what=Write(OTHER, "overwrite"))
    assert [copy.code for copy in stale_copies([query(), copied], pairs)] == [STALE_COPY]
    assert not [*stale_copies([query(), query(2), copied], pairs)]


# Complete measurements, as a user runs them.

HANGS = """
import os, sqlite3, time
from sqlstress import setup, transaction

@setup
def make(database):
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE t (n)")
    connection.close()

@transaction
def work(database):
    if "rehearsal-" in database:
        WHAT
    sqlite3.connect(database).execute("SELECT * FROM t").fetchall()
"""


def suspicions_of(report: sqlstress.Report) -> list[Sighting]:
    return [
        sighting for run in report.runs for sighting in run.trials[0].sightings if sighting.topic == SUSPICION
    ]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow rehearsals the time that a busy machine needs."""
    for limit in ("ALL_S", "AFTER_S", "START_S"):
        monkeypatch.setattr(rehearsal, limit, 120.0)


@pytest.mark.usefixtures("patient")
def test_suspicion_has_both_statements_with_lines_and_files_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "MAX_ROUNDS", 30)
    file = ROOT / "examples" / "recipes" / "hit_counter_wrong.py"
    report = sqlstress.measure(
        "app", file=str(file), concurrency=1, ops=10, repeat=1, directory=tmp_path, keep=True
    )
    (found,) = suspicions_of(report)
    lines = file.read_text(encoding="utf-8").splitlines()
    numbers = [int(found.traits[name].partition(":")[2]) for name in ("first_at", "then_at")]
    assert "SELECT hits" in lines[numbers[0] - 1] and "UPDATE page" in lines[numbers[1] - 1]
    assert found.traits["then"].startswith("UPDATE page SET hits = ")
    assert (found.what, found.count) == (STALE, 30)
    (database,) = tmp_path.rglob("*.db")
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT hits FROM page").fetchone() == (10,)
    connection.close()


RACE = """
import sqlite3
from sqlstress import connect, setup, transaction

@setup
def make(database):
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, name TEXT, state TEXT, points INTEGER)")
        db.executemany("INSERT INTO job (name, state, points) VALUES ('a', 'new', 0)", [()] * 500)

@connect
def opened(database):
    return sqlite3.connect(database, timeout=60)
"""
RACING = """
@transaction
def NAME(db):
    row = db.execute("SELECT READ").fetchone()
    with db:
        WRITE
"""
RACES = {
    "a double insert": (
        "id FROM job WHERE name = 'b'",
        "row or db.execute(\"INSERT INTO job (name) VALUES ('b')\")",
    ),
    "a race": (
        "count(*) FROM job",
        "row[0] < 9999 and db.execute('INSERT INTO job (points) VALUES (?)', row)",
    ),
    "a double claim": (
        "id FROM job WHERE state = 'new' ORDER BY id",
        "db.execute(\"UPDATE job SET state = 'taken' WHERE id = ?\", row)",
    ),
    "a double use": (
        "id FROM job ORDER BY id",
        "db.execute('DELETE FROM job WHERE id = ?', row)",
    ),
    "a lost update": (
        "points + 1, id FROM job WHERE id = 7 AND points >= 0",
        "db.execute('UPDATE job SET points = ? WHERE id = ?', row)",
    ),
}


# A report leaves out some of many suspicions. The load may insert the row: then only a rehearsal on the data
# before the load meets a double insert, and there is none if the other rehearsal has found a race.
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("races", [[*RACES][:1], [*RACES][1::2], [*RACES][2::2]], ids=" and ".join)
def test_race_is_called_by_its_effect(races: list[str], tmp_path: Path) -> None:
    text = RACE
    for number, race in enumerate(races):
        read, write = RACES[race]
        text += RACING.replace("NAME", f"work_{number}").replace("READ", read).replace("WRITE", write)
    found = findings_of(measured(tmp_path, text, concurrency=1, ops=1), "suspicion")
    texts = sorted(finding.text for finding in found)
    expected = sorted(f"Suspicion of {race}: work_{number} " for number, race in enumerate(races))
    assert len(texts) == len(races) and all(map(str.startswith, texts, expected))
    assert {finding.facts["kind"] for finding in found} == {STALE}


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("os._exit(3)", "a process of sqlstress ended with exit code 3"),
        thorough("raise SystemExit", None),
        thorough("time.sleep(60)", "a call took longer than 2 s"),
    ],
)
def test_failed_rehearsal_is_reported_and_keeps_the_measurement(
    tmp_path: Path, what: str, why: str | None
) -> None:
    report = measured(tmp_path, HANGS.replace("WHAT", what), concurrency=1, ops=10)
    assert report.ok and not suspicions_of(report)
    said = [str(finding.facts["why"]) for finding in report.findings if finding.code == "not-rehearsed"]
    assert [finding.startswith(str(why)) for finding in said] == [True] * bool(why)


HANGS_BESIDE_A_RACE = """
import sqlite3, time
from sqlstress import setup, transaction

@setup
def make(database):
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE t (n)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    connection.close()

@transaction
def hang(database):
    if "rehearsal-" in database:
        time.sleep(600)

@transaction
def count(database):
    connection = sqlite3.connect(database, isolation_level=None, timeout=60)
    ((n,),) = connection.execute("SELECT n FROM t")
    connection.execute("UPDATE t SET n = ?", (n + 1,))
    connection.close()
"""


@pytest.mark.usefixtures("patient")
def test_hanging_call_leaves_other_transactions_examined(tmp_path: Path) -> None:
    phases: dict[str, None] = {}
    report = measured(
        tmp_path,
        HANGS_BESIDE_A_RACE,
        concurrency=1,
        ops=10,
        progress=lambda progress: phases.update({progress.note: None}),
    )
    assert "rehearsing" in phases
    assert [(sighting.what, sighting.traits["transaction"]) for sighting in suspicions_of(report)] == [
        (STALE, "count")
    ]
    (found,) = findings_of(report, "not-rehearsed")
    assert (found.facts["transactions"], found.facts["why"]) == (["hang"], "a call took longer than 2 s")


LIMITED = """
import sqlite3
from contextlib import closing
from sqlstress import setup, transaction

@setup
def make(database):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE t (n)")

@transaction
def at_most_3(database):
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        ((n,),) = connection.execute("SELECT count(*) FROM t")
        if n < 3:
            connection.execute("INSERT INTO t VALUES (1)")
"""


@pytest.mark.usefixtures("patient")
@pytest.mark.thorough
def test_data_used_up_by_the_load_is_restored_for_the_rehearsal(tmp_path: Path) -> None:
    report = measured(tmp_path, LIMITED, concurrency=1, ops=10)
    (found,) = suspicions_of(report)
    assert (found.what, found.count) == (STALE, 3)


FORKS = """
    connection = sqlite3.connect(database)
        if not (child := os.fork()):
            connection.execute("SELECT 7").fetchall()
            os._exit(0)
        os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.thorough
def test_connection_used_by_a_fork_is_reported_with_its_line(tmp_path: Path) -> None:
    report = measured(tmp_path, HANGS.replace("WHAT", FORKS.strip()), concurrency=1, ops=10)
    (found,) = suspicions_of(report)
    assert (found.what, found.traits["first"]) == (FORKED, "SELECT 7")
    line = int(found.traits["first_at"].partition(":")[2])
    assert "SELECT 7" in (tmp_path / "own.py").read_text(encoding="utf-8").splitlines()[line - 1]


@pytest.mark.thorough
def test_suspicions_of_scripts_have_the_place_of_each_statement(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "transfer"
    options: dict[str, Any] = {
        "setup": str(folder / "schema.sql"),
        "ops": 10,
        "repeat": 1,
        "directory": tmp_path,
        "strict": True,
    }
    for script, places in (("wrong.sql", {(":6", ":10"), (":7", ":11")}), ("right.sql", set())):
        report = sqlstress.measure("sql", script=[str(folder / script)], concurrency=1, **options)
        assert report.exit_code == (3 if places else 0)  # by --strict: no check was given
        at = [(sighting.traits["first_at"], sighting.traits["then_at"]) for sighting in suspicions_of(report)]
        assert {(first[-2:], then[-3:]) for first, then in at} == places


PAYS_OUT = r"""
\set amount random(20, 60)
SELECT balance FROM account WHERE id = 1 \gset
\set needed :amount
\if TEST
UPDATE account SET balance = balance - :needed WHERE id = 1;
\else
UPDATE account SET balance = balance + 50 WHERE id = 1;
\endif
"""


@pytest.mark.parametrize(
    ("test", "kind"),
    [
        (":balance >= :amount", GUARDED),
        ("not (:balance < :amount)", GUARDED),
        (":amount > 1", MAYBE_GUARDED),
    ],
)
def test_script_that_tests_its_reads_is_suspected_at_the_write(tmp_path: Path, test: str, kind: str) -> None:
    script, setup = tmp_path / "pay.sql", tmp_path / "schema.sql"
    script.write_text(PAYS_OUT.lstrip().replace("TEST", test), encoding="utf-8")
    # The first call reads 0, so it takes the other branch.
    table = "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)"
    setup.write_text(f"{table}; INSERT INTO account VALUES (1, 0);", encoding="utf-8")
    report = sqlstress.measure(
        "sql", script=[str(script)], setup=str(setup), concurrency=1, ops=20, repeat=1, directory=tmp_path
    )
    first = suspicions_of(report)[0]
    assert (first.what, first.traits["then_at"].rpartition(":")[2]) == (kind, "5")


# Searches by range, and transactions that Python's sqlite3 begins just before a write.


@pytest.mark.parametrize(
    ("condition", "is_range"),
    [
        ("room = 1 AND start < 5", True),
        ("start BETWEEN 1 AND 5", True),
        ("name LIKE 'a%'", True),
        ("room <> 1", False),
        ("room <> 1 AND start >= 5", True),
        ("data ->> 'name' = 'a<b'", False),
        ("name = 'like'", False),
    ],
)
def test_range_differs_from_other_conditions(condition: str, is_range: bool) -> None:
    assert searches_range(f"SELECT id FROM t WHERE {condition} LIMIT 1") == is_range
    assert not searches_range("SELECT start < 5 FROM t")


BOOKS = """
import random, sqlite3
from sqlstress import connect, setup, transaction

@setup
def create(database):
    sqlite3.connect(database).executescript("PRAGMA journal_mode=WAL; CREATE TABLE booking (room, start)")

@connect
def opened(database):
    return sqlite3.connect(database, timeout=30{isolation})

@transaction
def book(db):
    room = random.randrange(10**9)
    if db.execute("SELECT 1 FROM booking WHERE room = ? {range}", (room,)).fetchone() is None:
        with db:
            db.execute("INSERT {ignore} INTO booking VALUES (?, 1)", (room,))
"""


@pytest.mark.parametrize(
    ("isolation", "searched", "ignore", "effect", "late"),
    [
        ("", "AND start < 5", "", "double-insert-in-range", True),
        (", isolation_level='IMMEDIATE'", "AND start < 5", "", "double-insert-in-range", True),
        (", isolation_level=None", "AND start = 5", "", "double-insert", False),
        (", isolation_level=None", "AND start = 5", "OR IGNORE", "double-insert-despite-key", False),
    ],
)
def test_cure_of_a_double_insert_fits_the_search_and_the_transaction(
    isolation: str, searched: str, ignore: str, effect: str, late: bool, tmp_path: Path
) -> None:
    report = measured(tmp_path, BOOKS.format(isolation=isolation, range=searched, ignore=ignore))
    (finding,) = findings_of(report, "suspicion")
    assert (finding.facts["effect"], finding.facts["late"]) == (effect, late)
    assert ("a UNIQUE index cannot refuse it" in finding.text) == (effect == "double-insert-in-range")
    assert ("NULLs in a key" in finding.text) == bool(ignore)
    assert ("begins a transaction at the first write" in finding.text) == late


def test_begin_in_the_same_line_as_the_write_is_not_always_of_python(tmp_path: Path) -> None:
    """A library such as Django runs BEGIN itself, with isolation_level=None."""
    program = BOOKS.format(isolation=", isolation_level=None", range="", ignore="").replace(
        'execute("INSERT  INTO booking VALUES (?, 1)", (room,))',
        'executescript(f"BEGIN IMMEDIATE; INSERT INTO booking VALUES ({room}, 1); COMMIT")',
    )
    (finding,) = findings_of(measured(tmp_path, program), "suspicion")
    assert (finding.facts["effect"], finding.facts["late"]) == ("double-insert", False)


SAVES = """
@transaction
def points(db):
    with db:
        db.execute("UPDATE job SET points = points + 1 WHERE id = 7")

@transaction
def rename(db):
    (points,) = db.execute("SELECT points FROM job WHERE id = 7").fetchone()
    with db:
        db.execute("UPDATE job SET name = ?, points = ? WHERE id = 7", (str(time.time()), points))
"""


def test_columns_that_an_update_writes_back_are_named(tmp_path: Path) -> None:
    text = f"import time\n{RACE.partition('@transaction')[0]}{SAVES}"
    (finding,) = findings_of(measured(tmp_path, text, concurrency=1, ops=9), "suspicion")
    assert "writes back other columns as it has read them: points." in finding.text
    assert finding.facts["transaction"] == "rename"


FOR_UPDATE = """
from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlstress import connect, setup, transaction

class Base(DeclarativeBase): pass

class Seat(Base):
    __tablename__ = "seat"
    id: Mapped[int] = mapped_column(primary_key=True)
    taken: Mapped[int]

def read(session):
    return session.execute(select(Seat).where(Seat.id == 1){lock}).scalar_one()

@setup
def create(database):
    engine = opened(database)
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add(Seat(id=1, taken=0))
    engine.dispose()

@connect
def opened(database):
    return create_engine(f"sqlite:///{{database}}")

@transaction
def book(engine):
    with Session(engine) as session, session.begin():
        seat = read(session)
        seat.taken = seat.taken + 1
"""


@pytest.mark.parametrize("lock", ["", ".with_for_update()"])
@pytest.mark.thorough
def test_method_that_locks_no_row_on_sqlite_is_named(lock: str, tmp_path: Path) -> None:
    report = measured(tmp_path, FOR_UPDATE.format(lock=lock), concurrency=1, ops=9)
    (finding,) = findings_of(report, "suspicion")
    assert ("SQLite ignores with_for_update." in finding.text) == bool(lock)


def test_successive_functions_in_a_frame_have_no_common_function() -> None:
    file = racy_programs.__file__
    assert file
    first, second = (
        function.__code__.co_firstlineno for function in (racy_programs.pop_wrong, racy_programs.claim_wrong)
    )
    reader, writer = StackEntry(1, file, first + 1, 4), StackEntry(1, file, second + 1, 8)
    assert common_depth([reader], [writer]) is None
    assert common_depth([reader], [reader._replace(instruction=8)]) == 0
    nowhere = reader._replace(file="nowhere.py")
    assert common_depth([nowhere], [nowhere._replace(file="elsewhere.py")]) is None


def saved(line: str, sql: str) -> TracedStatement:
    """Return an UPDATE by Django of the row 7."""
    what = SETS._replace(rows=frozenset({frozenset({(("id",), (7,))})}))
    return write(2, what, at=line, sql=f'UPDATE "t" SET {sql} WHERE "t"."id" = 7')


ADDS = '"n" = ("t"."n" + 1)'


@pytest.mark.parametrize(
    ("first", "then", "is_twice"),
    [
        (("1", f"{ADDS}, \"x\" = 'a'"), ("2", f"{ADDS}, \"x\" = 'b'"), True),
        (("1", ADDS), ("2", '"n" = 5'), False),
        (("1", ADDS), ("2", '"n" = ("t"."n" + 2)'), False),
        (("1", ADDS), ("1", ADDS), False),
    ],
)
def test_expression_that_is_saved_twice_is_suspected(
    first: tuple[str, str], then: tuple[str, str], *, is_twice: bool
) -> None:
    found = [suspicion.code for suspicion in weak_checks([saved(*first), saved(*then)], set(), {})]
    assert found == [SECOND_SAVE] * is_twice


@pytest.mark.parametrize(
    ("sql", "reuses", "is_kept"),
    [
        ("INSERT INTO u (\"t_no\", text) VALUES (7, 'a, ''b'' (c)')", True, True),
        ("INSERT INTO u (text, t_id) VALUES ('8, 7', 7)", True, True),
        ("INSERT INTO u (t_no) VALUES (7)", False, False),
        ("INSERT INTO u (t_no) VALUES (17)", True, False),
        ("INSERT INTO u (id, pieces) VALUES (7, 7)", True, False),
    ],
    ids=["kept", "second_column", "autoincrement", "another_id", "no_reference"],
)
def test_id_of_a_deleted_row_in_another_table_is_suspected(sql: str, *, reuses: bool, is_kept: bool) -> None:
    kept = write(1, Write(OTHER, INSERT), sql=sql)
    deleted = write(1, Write(TABLE, DELETE, rows=frozenset({frozenset({(("id",), (7,))})})))
    found = [suspicion.code for suspicion in weak_checks([kept, deleted], {TABLE} if reuses else set(), {})]
    assert found == [KEPT_ID] * is_kept


def pages(*offsets: int, transaction: int | None = None) -> list[list[TracedStatement]]:
    """Return calls that each read a page, in a common transaction or each in another."""
    sql = "SELECT id FROM t ORDER BY name LIMIT 20 OFFSET {}"
    return [
        [query(transaction or number, sql=sql.format(offset))] for number, offset in enumerate(offsets, 1)
    ]


@pytest.mark.parametrize(
    ("calls", "is_suspected"),
    [
        (pages(0, 20, 40, 60), True),
        (pages(0, 40, 20, 60), False),
        (pages(0, 20, 40), False),
        (pages(0, 20, 40, 60, transaction=1), False),
    ],
)
def test_pages_of_successive_calls_are_suspected(
    calls: list[list[TracedStatement]], *, is_suspected: bool
) -> None:
    delete = write(9, SETS._replace(kind="delete"))
    found = [suspicion.code for suspicion in TracedProgram([*calls, [delete]]).pages_of_calls(calls)]
    assert found == [OFFSET_PAGES] * is_suspected


@pytest.mark.parametrize("is_new_id", [False, True])
def test_id_of_a_new_row_is_no_counter_in_memory(*, is_new_id: bool) -> None:
    calls = []
    for number in range(5, 12):
        new = Write(OTHER, "insert", rows=frozenset({frozenset({(("id",), (number,))})}))
        sets = SETS._replace(rows=frozenset({frozenset({(("id",), (1,))})}), numbers={"n": number})
        calls.append([*[write(number, new)] * is_new_id, write(number, sets)])
    assert [suspicion.code for suspicion in repeated_calls(calls)] == [FROM_MEMORY] * (not is_new_id)


WRITER = """
import asyncio, queue, sqlite3, threading
from sqlstress import connect, setup, transaction

@setup
def create(database):
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE t (n)")

def write(database, inbox):
    db = sqlite3.connect(database, timeout=30, isolation_level=None)
    while batch := inbox.get():
        db.execute("BEGIN IMMEDIATE")
        for done in batch:
            db.execute("INSERT INTO t VALUES (1)")
        db.execute("COMMIT")
        for done in batch:
            done.get_loop().call_soon_threadsafe(done.set_result, None)

@connect
def opened(database):
    inbox = queue.Queue()
    threading.Thread(target=write, args=(database, inbox), daemon=True).start()
    return asyncio.new_event_loop(), inbox

async def wait(done):
    await done

async def insert(loop, inbox):
    batch = [loop.create_future() for _ in range(3)]
    tasks = [asyncio.create_task(wait(done)) for done in batch]
    await asyncio.sleep(0)
    inbox.put(batch)
    await asyncio.gather(*tasks)

@transaction
def work(opened):
    opened[0].run_until_complete(insert(*opened))
"""


def test_thread_that_commits_the_work_of_several_tasks_is_no_suspicion(tmp_path: Path) -> None:
    assert findings_of(measured(tmp_path, WRITER, concurrency=1, ops=9), "suspicion") == []
