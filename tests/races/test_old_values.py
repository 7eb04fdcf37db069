"""Values of an earlier call: programs that write from an old object or cache, and right ones like them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sqlstress.races.old_values import RAISED, OldWrite, old_values, old_writes, raise_values
from sqlstress.races.protected_writes import OwnRows
from sqlstress.races.suspicions import OLD_VALUE
from sqlstress.races.traced_statements import INSERT, TracedStatement, Write
from tests.own_app import findings_of, line_of, measured
from tests.recording.failing_programs import open_file
from tests.rows import mostly_thorough, thorough

TABLE, OTHER = ("a.db", "t"), ("a.db", "u")
KEYS = (frozenset({"id"}),)


def row(number: int) -> frozenset[Any]:
    return frozenset({frozenset({(("id",), (number,))})})


def query(transaction: int, sql: str = "SELECT n FROM t WHERE id = 1", **facts: Any) -> TracedStatement:
    given = {"transaction": transaction, "rows": row(1), "reads": {TABLE: frozenset({"id", "n", "state"})}}
    return TracedStatement(sql, "read", **{**given, **facts})


def update(transaction: int, n: int = 5, at: str = "write", **facts: Any) -> TracedStatement:
    given = {"sets": frozenset("n"), "wheres": frozenset({"id"}), "keys": KEYS, "rows": row(1)}
    what = Write(TABLE, **{"kind": "update", "numbers": {"n": n}, **given, **facts})
    return TracedStatement("UPDATE t SET n = 5 WHERE id = 1", at, transaction=transaction, write=what)


def insert(**facts: Any) -> TracedStatement:
    what = Write(OTHER, INSERT, keys=KEYS, rows=row(1))._replace(**facts)
    return TracedStatement("INSERT INTO u VALUES (1)", "write", transaction=3, write=what)


READ = [query(1), update(1)]
MORE = [query(9, rows=row(2)), update(9, rows=row(2))]
CLAIM = [query(1, "SELECT n FROM t WHERE state = 'new'"), update(1, sets=frozenset({"state"}))]
LOCK = frozenset({(1, 2, 3)})


@pytest.mark.parametrize(
    ("calls", "is_old"),
    [
        ([READ, [update(2)]], True),
        ([READ, [query(2, rows=row(2)), update(2)]], True),
        ([READ, [query(2, reads={OTHER: frozenset("x")}), update(3)]], True),
        ([[update(1)]], False),
        ([READ], False),
        ([[query(1, rows=row(2))], [update(2)]], False),
        ([READ, [query(2), update(2)]], False),
        ([READ, [query(2), update(3)]], False),
        ([READ, [query(2, rows=None), update(3)]], False),
        ([READ, [query(2, reads={OTHER: frozenset("x")}), update(2)]], False),
        ([READ, [query(2, "PRAGMA data_version", reads={}, rows=None), update(3)]], False),
        ([READ, [update(2, computed=frozenset("n"))]], False),
        ([READ, [update(2, wheres=frozenset({"id", "version"}))]], False),
        ([READ, [update(2, wheres=frozenset({"id", "n"}))]], False),
        ([READ, [update(2, wheres=frozenset({"id", "n"}))], [update(3)]], False),
        ([CLAIM, [update(2)]], False),
        ([[query(1), insert()], [update(2)]], False),
        ([[query(1), insert(numbered=True)], [update(2)]], True),
        ([[query(1), insert(rows=frozenset())], [update(2)]], True),
        ([[query(1, locks=LOCK)], [update(2)._replace(locks=LOCK)]], False),
        ([[query(1), update(1, kind=INSERT)], [update(2)]], False),
        ([READ, [update(2, kept=frozenset("n"), numbers={})]], True),
    ],
)  # fmt: skip
def test_updates_that_may_write_an_old_value(calls: list[list[TracedStatement]], is_old: bool) -> None:
    found = old_writes([], [("work", call) for call in [*calls, MORE]], ())
    assert bool(found) == is_old
    assert all((old.name, old.call, old.columns) == ("work", 1, frozenset("n")) for old in found)


def test_row_that_the_process_added_when_it_connected_is_its_own() -> None:
    own = OwnRows(1, frozenset({("t", (("id",), (1,)))}))
    assert old_writes([query(1)], [("work", [update(2)])], ())
    assert not old_writes([query(1)], [("work", [update(2)])], [own])


def test_suspicion_names_the_query_of_the_written_row() -> None:
    queries = [query(1, f"SELECT n FROM t WHERE id = {number} LIMIT 1", rows=None) for number in (1, 2)]
    (old,) = old_writes(queries, [("work", [update(2)])], ())
    assert old.query == queries[0]


def test_column_that_no_call_changes_is_left_out() -> None:
    keeps = update(2, kept=frozenset("n"), numbers={})
    assert not old_writes([query(1)], [("work", [keeps])], ())


def repeated(*numbers: int) -> list[tuple[str, list[TracedStatement]]]:
    return [("work", [update(2, n)]) for n in numbers]


def test_value_that_an_earlier_call_has_set_again_is_not_old() -> None:
    calls = [("work", [query(1), update(1, 0)]), *(("reset", [kept_update(2)]) for _ in range(5))]
    writes = old_writes([], calls, ())
    raised = {("t", "n")}
    assert [*old_values(writes, calls[:1] + [("save", [kept_update(2)])] * 5, raised)] == []
    assert [*old_values(writes, [("work", [query(1), kept_update(1)]), *calls[1:]], raised)]


def kept_update(transaction: int) -> TracedStatement:
    return update(transaction, kept=frozenset("n"), numbers={})


@pytest.mark.parametrize(
    ("again", "count"),
    [
        ([RAISED + n for n in range(5)], 5),
        ([RAISED + n for n in range(4)], 4),
        ([RAISED + n for n in range(3)], None),
        ([*range(5)], None),
        ([2 * RAISED + n for n in range(5)], None),
    ],
    ids=["derived", "time_over", "too_few", "absolute", "other_number"],
)
def test_only_numbers_raised_by_the_same_amount_derive_from_the_old_value(
    again: list[int], count: int | None
) -> None:
    writes = old_writes([query(1)], repeated(*range(5)), ())
    found = [*old_values(writes, repeated(*again), {("t", "n")})]
    assert [(name, calls, suspicion.code) for name, calls, suspicion in found] == (
        [("work", count, OLD_VALUE)] if count else []
    )
    assert not [*old_values(writes, repeated(*again), ())]


@pytest.mark.parametrize("keeps", [True, False])
def test_raised_value_that_is_written_back_derives_from_the_old_value(*, keeps: bool) -> None:
    kept = [("work", [update(2, kept=frozenset("n"), numbers={})]) for _ in range(4)]
    writes = old_writes([query(1)], [*kept, *repeated(7)], ())
    again = kept if keeps else repeated(*range(4))
    assert len([*old_values(writes, again, {("t", "n")})]) == keeps


def test_values_are_raised_in_columns_of_integers(file: Path) -> None:
    with open_file(file) as connection:
        connection.execute("CREATE TABLE mixed (id INTEGER PRIMARY KEY, n, text)")
        connection.execute("INSERT INTO mixed VALUES (1, 2, 'a'), (2, 3, 'b')")
        connection.execute("CREATE TABLE few (n CHECK (n < 9))")
        connection.execute("INSERT INTO few VALUES (1)")
    folder = Path("copy").resolve()
    columns = {"mixed": frozenset({"n", "text"}), "few": frozenset("n"), "missing": frozenset("n")}
    writes = [
        OldWrite("", 0, 0, query(1), update(2), Write((str(folder / file.name), table), "update"), names)
        for table, names in columns.items()
    ]
    assert raise_values(file.parent, folder, writes) == {("mixed", "n")}
    with open_file(file) as connection:
        assert connection.execute("SELECT n, text FROM mixed").fetchall() == [
            (2 + RAISED, "a"),
            (3 + RAISED, "b"),
        ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "app.db"


# Programs.

SETUP = """
import itertools, sqlite3
from sqlstress import check, connect, setup, transaction

@setup
def made(path):
    db = sqlite3.connect(path)
    db.executescript(
        "PRAGMA journal_mode = WAL; "
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, version INTEGER DEFAULT 0);"
        "INSERT INTO account (id, balance) VALUES (1, 100), (2, 100)"
    )
    db.close()

pairs = itertools.cycle([(1, 2), (2, 1)])
"""
CACHE = f"""{SETUP}
cache = {{}}

@connect
def opened(path):
    db = sqlite3.connect(path, timeout=30, isolation_level=None)
    for number, balance in db.execute("SELECT id, balance FROM account"):
        cache[number] = balance
    return db

@transaction
def move(db):
    source, target = next(pairs)
    db.execute("BEGIN IMMEDIATE")
    for number, change in ((source, -10), (target, 10)):
        cache[number] += change
        db.execute("UPDATE account SET balance = ? WHERE id = ?", (cache[number], number))
    db.execute("COMMIT")
"""
SQLALCHEMY = f"""{SETUP}
from sqlalchemy import create_engine, event
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

class Base(DeclarativeBase):
    pass

class Account(Base):
    __tablename__ = "account"
    id: Mapped[int] = mapped_column(primary_key=True)
    balance: Mapped[int]

@connect
def opened(path):
    engine = create_engine(f"sqlite:///{{path}}", connect_args={{"timeout": 30, "isolation_level": None}})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return Session(engine, expire_on_commit=False)

kept = []

@transaction
def move(session):
    source, target = (session.get(Account, number) for number in next(pairs))
    source.balance -= 10
    target.balance += 10
    kept.extend((source, target))
    session.commit()
"""
PEEWEE = f"""{SETUP}
import peewee

bank = peewee.SqliteDatabase(None)

class Account(peewee.Model):
    balance = peewee.IntegerField()

    class Meta:
        database = bank

accounts = {{}}

@connect
def opened(path):
    bank.init(path, timeout=30)
    bank.connect(reuse_if_open=True)

@transaction
def move():
    with bank.atomic("IMMEDIATE"):
        for number in (1, 2):
            accounts.setdefault(number, None)
            accounts[number] = accounts[number] or Account.get_by_id(number)
        source, target = next(pairs)
        accounts[source].balance -= 10
        accounts[target].balance += 10
        accounts[source].save()
        accounts[target].save()
"""


CLAIMS = f"""{SETUP.replace("(2, 100)", "(2, 100), (3, 100), (4, 100), (5, 100), (6, 100)")}
mine = {{}}

@connect
def opened(path):
    return sqlite3.connect(path, timeout=30, isolation_level=None)

@transaction
def show(db):
    db.execute("SELECT balance FROM account").fetchall()

@transaction
def work(db):
    if not mine:
        mine.update(db.execute(
            "UPDATE account SET version = version + 1 WHERE id = "
            "(SELECT min(id) FROM account WHERE version % 2 = 0) RETURNING id, balance"
        ).fetchall())
    for number in mine:
        mine[number] += next(pairs)[0] * 2 - 3
        db.execute("UPDATE account SET balance = ? WHERE id = ?", (mine[number], number))
"""


@dataclass
class Change:
    """Edits that make a right program of a wrong one."""

    program: str
    edits: dict[str, str]

    @property
    def text(self) -> str:
        text = self.program
        for old, new in self.edits.items():
            assert old in text
            text = text.replace(old, new)
        return text


SELECT = 'db.execute(f"SELECT balance FROM account WHERE id = {number}").fetchone()[0]'
LOOKS = """if db.execute("PRAGMA data_version").fetchone() != cache.get("version"):
        cache["version"] = db.execute("PRAGMA data_version").fetchone()
        cache.update(db.execute("SELECT id, balance FROM account"))
    for number, change"""
RISES = Change(CACHE, {"cache[number] += change": "cache[number] += abs(change)"}).text
"""Numbers that rise in each call could also be a counter that the program keeps, and never reads."""
RIGHT = {
    "reads_again": Change(CACHE, {"cache[number] += change": f"cache[number] = {SELECT} + change"}),
    "data_version": Change(CACHE, {"for number, change": LOOKS}),
    "absolute": Change(CACHE, {"cache[number] += change": "cache[number] = 100 + change"}),
    "computed": Change(CACHE, {"balance = ? WHERE": "balance = balance + ? WHERE"}),
    "claims": Change(CLAIMS, {}),
    "expires": Change(SQLALCHEMY, {", expire_on_commit=False": ""}),
    "gets_again": Change(PEEWEE, {"accounts[number] or ": ""}),
}


@pytest.mark.parametrize(
    ("program", "writes"),
    [
        pytest.param(CACHE, '        db.execute("UPDATE', id="cache"),
        pytest.param(RISES, '        db.execute("UPDATE', id="rises"),
        thorough(SQLALCHEMY, "    session.commit()", id="sqlalchemy"),
        thorough(PEEWEE, "        accounts[source].save()", id="peewee"),
    ],
)
def test_write_from_an_old_object_is_suspected(tmp_path: Path, program: str, writes: str) -> None:
    found = findings_of(measured(tmp_path, program), "suspicion")
    ((kind, table, at),) = [
        (finding.facts["kind"], finding.facts["table"], finding.facts["then"].at) for finding in found
    ]
    assert (kind, table) == (OLD_VALUE, "account")
    assert at == f"own.py:{line_of(program, writes)}"


@pytest.mark.parametrize("name", mostly_thorough(RIGHT, {"absolute"}))
def test_right_program_is_not_suspected(tmp_path: Path, name: str) -> None:
    report = measured(tmp_path, RIGHT[name].text)
    assert [finding.text for finding in findings_of(report, "suspicion")] == []
