"""Races that show in all transactions of a program together: wrong programs, and right ones like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.races.program_races import TracedProgram
from sqlstress.races.suspicions import EXPIRED, MIXED_VIEW, SKEW, SPLIT_VIEW, STALE
from sqlstress.races.traced_statements import TracedStatement, Write
from sqlstress.races.weak_checks import weak_checks
from tests.cli.conftest import Cli, saved

BEGINNING = """
import os, random, sqlite3, time
from pathlib import Path
from sqlstress import connect, setup, transaction

@setup
def create(database):
    for path in (database, Path(database).with_name("savings.db")):
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA journal_mode=wal")
            db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, cents INTEGER)")
            db.execute("INSERT INTO account VALUES (1, 0)")
            db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, is_open INTEGER, sold INTEGER)")
            db.execute("INSERT INTO event VALUES (1, 1, 0)")
            db.execute("CREATE TABLE booking (event INTEGER)")
            db.execute("CREATE TABLE balance (current INTEGER, saved INTEGER)")
            db.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, owner, until DEFAULT 0, done DEFAULT 0)")
            db.executemany("INSERT INTO job (id) VALUES (?)", [(n,) for n in range(5000)])
            db.execute("CREATE TABLE worker (pid INTEGER PRIMARY KEY, calls INTEGER)")

@connect
def opened(database):
    db = sqlite3.connect(database, timeout=30, isolation_level=None)
    db.execute("ATTACH ? AS savings", (str(Path(database).with_name("savings.db")),))
    db.execute("INSERT INTO worker VALUES (?, 0)", (os.getpid(),))
    return db

@transaction
def close_sale(db):
    db.execute("BEGIN IMMEDIATE")
    (sold,) = db.execute("SELECT count(*) FROM booking").fetchone()
    db.execute("UPDATE event SET is_open = 0, sold = ? WHERE id = 1", (sold,))
    db.execute("UPDATE event SET is_open = 1 WHERE id = 1")
    db.execute("COMMIT")

@transaction
def put_aside(db):
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE main.account SET cents = cents - 1 WHERE id = 1")
    db.execute("UPDATE savings.account SET cents = cents + 1 WHERE id = 1")
    db.execute("COMMIT")

"""

BOOKS = """
def {name}(db):
    {before}
    (is_open,) = db.execute("SELECT is_open FROM event WHERE id = 1").fetchone()
    {after}
    if is_open:
        db.execute("INSERT INTO booking VALUES (1)")
    db.execute("COMMIT")
"""
BOOKS_AFTER_BOTH_CHECKS = """
def checked_again_inside(db):
    query = "SELECT is_open FROM event WHERE id = 1"
    if db.execute(query).fetchone()[0]:
        db.execute("BEGIN IMMEDIATE")
        if db.execute(query).fetchone()[0]:
            db.execute("INSERT INTO booking VALUES (1)")
        db.execute("COMMIT")
"""
SHOWS = """
def only_shown(db):
    (is_open,) = db.execute("SELECT is_open FROM event WHERE id = 1").fetchone()
    str(is_open)
    db.execute("INSERT INTO booking VALUES (1)")
"""
AUDITS = """
def {name}(db):
    db.execute("{begin}")
    (current,) = db.execute("SELECT sum(cents) FROM main.account").fetchone()
    (saved,) = db.execute("SELECT sum(cents) FROM savings.account").fetchone()
    db.execute("COMMIT")
"""
WORKS = """
def {name}(db):
    now, me = time.time(), random.random()
    free = "SELECT id FROM job WHERE done = 0 AND until < ? LIMIT 1"
    claim = f"UPDATE job SET owner = ?, until = ? WHERE id = ({{free}}) RETURNING id"
    for (job,) in db.execute(claim, (me, now + 60, now)).fetchall():
        db.execute("UPDATE job SET done = 1 WHERE id = ?{condition}", (job, me)[:{count}])
"""
SUMS = """
def {name}(db):
    {begin}
    (current,) = db.execute("SELECT cents FROM main.account WHERE id = 1").fetchone()
    (saved,) = db.execute("SELECT cents FROM savings.account WHERE id = 1").fetchone()
    {use}
    {end}
"""
STORES = """
def {name}(db):
    {begin}
    (current,) = db.execute("SELECT sum(cents) FROM main.account").fetchone()
    (saved,) = db.execute("SELECT sum(cents) FROM savings.account").fetchone()
    db.execute("INSERT INTO balance VALUES (?, ?)", {stored})
    {end}
"""
HEARTBEATS = """
def heartbeat(db):
    (calls,) = db.execute("SELECT calls FROM worker WHERE pid = ?", (os.getpid(),)).fetchone()
    db.execute("UPDATE worker SET calls = ? WHERE pid = ?", (calls + 1, os.getpid()))
"""
TRANSACTIONS = (
    BOOKS.format(name="checked_before", before="", after='db.execute("BEGIN IMMEDIATE")'),
    BOOKS.format(name="checked_inside", before='db.execute("BEGIN IMMEDIATE")', after=""),
    BOOKS_AFTER_BOTH_CHECKS,
    SHOWS,
    AUDITS.format(name="deferred", begin="BEGIN"),
    AUDITS.format(name="immediate", begin="BEGIN IMMEDIATE"),
    WORKS.format(name="key_alone", condition="", count=1),
    WORKS.format(name="key_and_owner", condition=" AND owner = ?", count=2),
    SUMS.format(name="summed", begin="", use="assert current + saved < 9", end=""),
    SUMS.format(name="shown", begin="", use="print(current, saved, file=open(os.devnull, 'w'))", end=""),
    SUMS.format(
        name="summed_inside", begin="db.execute('BEGIN IMMEDIATE')", use="current + saved", end="db.commit()"
    ),
    STORES.format(name="stored", begin="", stored="(current, saved)", end=""),
    STORES.format(name="stored_one", begin="", stored="(current, 0)", end=""),
    STORES.format(
        name="stored_inside",
        begin="db.execute('BEGIN IMMEDIATE')",
        stored="(current, saved)",
        end="db.execute('COMMIT')",
    ),
    HEARTBEATS,
)
WRONG = {
    "checked_before": SKEW,
    "deferred": MIXED_VIEW,
    "key_alone": EXPIRED,
    "summed": SPLIT_VIEW,
    "stored": SPLIT_VIEW,
}
"""Race by the name of the transaction that has it."""


def test_wrong_transactions_are_suspected_and_right_ones_are_not(cli: Cli) -> None:
    program = BEGINNING + "".join(f"\n@transaction{text}" for text in TRANSACTIONS)
    Path("program.py").write_text(program, encoding="utf-8")
    said = cli("app", "program.py", "-c", "2", "--ops", "3", "--repeat", "1", "-o", "report.json")
    assert said.code == 0
    (trial,) = saved().runs[0].trials
    found = {
        (sighting.traits["transaction"], sighting.what)
        for sighting in trial.sightings
        if sighting.topic == "suspicion" and sighting.what in (*WRONG.values(), STALE)
    }
    assert found == {*WRONG.items()}


MAIN, SAVINGS = ("bank.db", "account"), ("savings.db", "account")
TOGETHER = [
    TracedStatement("UPDATE account", "", transaction=9, write=Write(table, "update"))
    for table in (MAIN, SAVINGS)
]


@pytest.mark.parametrize("in_wal", [True, False])
def test_rollback_journals_have_no_mixed_view(in_wal: bool) -> None:
    """A reader's lock on the first file keeps a writer of both from its commit."""
    reads = [
        TracedStatement("BEGIN", "", transaction=1),
        *(
            TracedStatement("SELECT", "", transaction=1, reads={table: frozenset({"cents"})}, in_wal=in_wal)
            for table in (MAIN, SAVINGS)
        ),
    ]
    kinds = [suspicion.code for suspicion in TracedProgram([reads, TOGETHER]).suspicions(reads)]
    assert kinds == [MIXED_VIEW] * in_wal


@pytest.mark.parametrize(
    ("value", "limit", "is_lease"),
    [
        ("1764000060.5", "1764000000.25", True),
        ("1764000000.5", "1764000000.5", False),
        ("'2026-01-02'", "'2026-01-01'", True),
        ("unixepoch() + 60", "unixepoch()", True),
        ("seen + 1", "9", False),
    ],
    ids=["number", "equal numbers", "text", "sum", "other column"],
)
def test_lease_sets_a_later_limit_than_it_compares(value: str, limit: str, is_lease: bool) -> None:
    job, row = ("bank.db", "job"), frozenset({frozenset({(("id",), (1,))})})
    columns = frozenset({"until", "owner"})
    claim = TracedStatement(
        f"UPDATE job SET owner = 1, until = {value} WHERE id = 1 AND until < {limit}",
        "",
        transaction=1,
        write=Write(job, "update", sets=columns, wheres=frozenset({"id", "until"}), rows=row),
    )
    done = TracedStatement(
        "UPDATE job SET done = 1 WHERE id = 1",
        "",
        transaction=2,
        write=Write(job, "update", sets=frozenset({"done"}), wheres=frozenset({"id"}), rows=row),
    )
    kinds = [suspicion.code for suspicion in weak_checks([claim, done], set(), {})]
    assert kinds == [EXPIRED] * is_lease
