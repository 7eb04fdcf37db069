"""Programs in the style of libraries that use SQLite: each function makes the statements of one call. Names
of functions with a race end with `wrong`.

Each function gets a connection to a database with SCHEMA, or its path.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sqlite3
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

import apsw
import peewee
from sqlalchemy import Integer, create_engine, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from tests.a_library import Dictionary
from tests.races.programs import programs_of

SCHEMA = """
CREATE TABLE item (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE job (id INTEGER PRIMARY KEY, status TEXT, worker TEXT);
CREATE TABLE hit (client TEXT, time REAL);
CREATE TABLE ticket (number INTEGER, text TEXT);
CREATE TABLE numbered (number INTEGER UNIQUE, text TEXT);
CREATE TABLE bill (year INTEGER, number INTEGER, PRIMARY KEY (year, number));
CREATE TABLE booking (room TEXT, day TEXT);
CREATE TABLE seat (name TEXT PRIMARY KEY, guest TEXT);
CREATE TABLE product (id INTEGER PRIMARY KEY, stock INTEGER, name TEXT, version INTEGER NOT NULL);
CREATE TABLE settings (id INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE tag (name TEXT PRIMARY KEY, n INTEGER);
CREATE TABLE step (run TEXT, id TEXT, parent TEXT, PRIMARY KEY (run, id));
CREATE TABLE page (id INTEGER PRIMARY KEY, hits INTEGER, changed);
CREATE TABLE watched (id INTEGER PRIMARY KEY, name TEXT, n INTEGER);
CREATE TABLE seen (watched INTEGER);
CREATE TRIGGER counts AFTER INSERT ON seen BEGIN UPDATE Watched SET n = n + 1 WHERE id = new.watched; END;
CREATE TABLE trait (item INTEGER, key TEXT, value INTEGER, UNIQUE (item, key) ON CONFLICT REPLACE);
CREATE TABLE tally (n INTEGER PRIMARY KEY);
CREATE TABLE filled (id INTEGER PRIMARY KEY, n INTEGER NOT NULL ON CONFLICT REPLACE DEFAULT 0);
CREATE TABLE held (name TEXT PRIMARY KEY, owner TEXT);
CREATE TABLE shelf (id INTEGER PRIMARY KEY, left INTEGER CHECK (left >= 0));
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, seen INTEGER);
INSERT INTO item VALUES ('hits', '0');
INSERT INTO job SELECT value, 'new', NULL FROM json_each('[1, 2, 3, 4, 5, 6, 7, 8, 9]');
INSERT INTO product VALUES (1, 100, 'pen', 1);
INSERT INTO settings VALUES (1, '{"n": 0}');
INSERT INTO tag VALUES ('red', 0);
INSERT INTO person VALUES (1, 'Anna', 0);
INSERT INTO step VALUES ('a', '1', NULL);
INSERT INTO watched VALUES (1, 'a', 0);
INSERT INTO page VALUES (1, 0, 0);
INSERT INTO held VALUES ('free', NULL);
INSERT INTO trait VALUES (1, 'plays', 0);
INSERT INTO tally VALUES (0);
INSERT INTO shelf VALUES (1, 1000);
INSERT INTO filled VALUES (1, NULL);
"""


@contextmanager
def opened(file: str) -> Iterator[sqlite3.Connection]:
    """Yield a connection without implicit transactions: the code begins them."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


@contextmanager
def immediate(file: str) -> Iterator[sqlite3.Connection]:
    with opened(file) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


# A dictionary in a table.


def _increment(connection: sqlite3.Connection) -> None:
    ((value,),) = connection.execute("SELECT value FROM item WHERE key = 'hits'")
    connection.execute("-- one more\nREPLACE INTO item VALUES ('hits', ?)", (int(value) + 1,))


def dict_wrong(connection: sqlite3.Connection) -> None:
    _increment(connection)


def dict_in_python_transaction_wrong(file: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        _increment(connection)


def dict_immediate(file: str) -> None:
    with immediate(file) as connection:
        _increment(connection)


def dict_default_if_missing(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT value FROM item WHERE key = 'new'").fetchone():
        connection.execute("INSERT OR REPLACE INTO item VALUES ('new', 'default')")


# A queue, with sqlite3 and with apsw.

FIRST = "SELECT id FROM job WHERE status = 'new' ORDER BY id LIMIT 1"


def pop_wrong(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        ((job,),) = connection.execute(FIRST)
        connection.execute("DELETE FROM job WHERE id = ?", (job,))


def pop_in_a_late_transaction_wrong(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        ((job,),) = connection.execute(FIRST)
        with connection:
            connection.execute("DELETE FROM job WHERE id = ?", (job,))


def delete_of_a_random_row(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        (row,) = connection.execute("SELECT id FROM job ORDER BY random() LIMIT 1")
        connection.execute("DELETE FROM job WHERE id = ?", row)


def pop_of_a_random_job_wrong(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        ((job, _),) = connection.execute("SELECT id, status FROM job ORDER BY random() LIMIT 1")
        connection.execute("DELETE FROM job WHERE id = ?", (job,))


def pop_returning(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        list(connection.execute(f"DELETE FROM job WHERE id = ({FIRST}) RETURNING id"))


def pop_counted(connection: sqlite3.Connection) -> None:
    row = connection.execute(FIRST).fetchone()
    if connection.execute("DELETE FROM job WHERE id = ?", row).rowcount == 1:
        connection.execute("INSERT INTO hit VALUES ('popped', 0)")


def _rows(connection: sqlite3.Connection, sql: str, *parameters: int) -> list[tuple[int]]:
    return connection.execute(sql, parameters).fetchall()


def pop_counted_behind_a_helper(connection: sqlite3.Connection) -> None:
    ((job,),) = _rows(connection, FIRST)
    if _rows(connection, "DELETE FROM job WHERE id = ? RETURNING id", job):
        connection.execute("INSERT INTO hit VALUES ('popped', 0)")


def pop_refused_by_a_library(connection: sqlite3.Connection) -> None:
    (job,) = Dictionary(connection).popitem()
    assert job


def worked_before_it_is_refused_by_a_library_wrong(connection: sqlite3.Connection) -> None:
    Dictionary(connection).work(bool)


def pop_counted_by_a_library_wrong(connection: sqlite3.Connection) -> None:
    (job,) = Dictionary(connection).popitem_and_count()
    assert job


def claim_wrong(connection: sqlite3.Connection) -> None:
    row = connection.execute(FIRST).fetchone()
    connection.execute("UPDATE job SET status = 'running', worker = 'me' WHERE id = ?", row)


def claim_and_finish(connection: sqlite3.Connection) -> None:
    row = connection.execute(FIRST).fetchone()
    claim = "UPDATE job SET status = 'running' WHERE id = ? AND status = 'new'"
    if connection.execute(claim, row).rowcount:
        connection.execute("UPDATE job SET status = 'done' WHERE id = ?", row)


def claim_in_transaction_and_finish(file: str) -> None:
    with immediate(file) as connection:
        row = connection.execute(FIRST).fetchone()
        connection.execute("UPDATE job SET status = 'running' WHERE id = ?", row)
    with opened(file) as connection:
        connection.execute("UPDATE job SET status = 'done' WHERE id = ?", row)


def claim_and_count_tries_wrong(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT id FROM product WHERE name = 'pen'").fetchone()
    claim = "UPDATE product SET name = 'mine', version = version + 1 WHERE id = ?"
    connection.execute(claim, row)


# A read transaction is open for as long as a query.


def claim_while_the_query_is_open(connection: sqlite3.Connection) -> None:
    query = connection.execute("SELECT id FROM job WHERE status = 'new'")
    row = next(query)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE job SET status = 'running' WHERE id = ?", row)
    connection.execute("COMMIT")


def claim_when_the_query_has_ended_wrong(connection: sqlite3.Connection) -> None:
    query = connection.execute("SELECT id FROM job WHERE status = 'new'")
    row = next(query)
    query.close()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE job SET status = 'running' WHERE id = ?", row)
    connection.execute("COMMIT")


# A row that a call has claimed, or created, belongs to the call until it releases the row.


def _seen_and_done(connection: sqlite3.Connection, job: int) -> None:
    (status, _) = connection.execute("SELECT status, worker FROM job WHERE id = ?", (job,)).fetchone()
    if status != "done":
        connection.execute("UPDATE job SET status = 'done', worker = NULL WHERE id = ?", (job,))


def claimed_read_again_and_finished(file: str) -> None:
    with immediate(file) as connection:
        ((job,),) = connection.execute(FIRST)
        connection.execute("UPDATE job SET status = 'running', worker = 'me' WHERE id = ?", (job,))
    with opened(file) as connection:
        _seen_and_done(connection, job)


def claimed_by_returning_and_finished(connection: sqlite3.Connection) -> None:
    claim = f"UPDATE job SET status = 'running' WHERE id = ({FIRST}) RETURNING id"
    ((job,),) = connection.execute(claim).fetchall()
    _seen_and_done(connection, job)


def claimed_one_and_finished_another_wrong(connection: sqlite3.Connection) -> None:
    connection.execute(f"UPDATE job SET status = 'running' WHERE id = ({FIRST})")
    _seen_and_done(connection, 9)


def sold_and_read_again_wrong(file: str) -> None:
    with immediate(file) as connection:
        ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
        connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))
    with opened(file) as connection:
        ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
        connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock + 1,))


def compared_once_wrong(connection: sqlite3.Connection) -> None:
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    compared = "UPDATE product SET stock = ? WHERE id = 1 AND stock = ?"
    connection.execute(compared, (stock - 1, stock))
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock + 1,))


def made_read_and_changed(connection: sqlite3.Connection) -> None:
    made = connection.execute("INSERT INTO person (name, seen) VALUES ('Bea', 0)").lastrowid
    ((seen,),) = connection.execute("SELECT seen FROM person WHERE id = ?", (made,))
    connection.execute("UPDATE person SET seen = ? WHERE id = ?", (seen + 1, made))


def made_if_missing_and_changed_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT OR IGNORE INTO tag VALUES ('a-longer-name', 0)")
    ((n,),) = connection.execute("SELECT n FROM tag WHERE name = 'a-longer-name'")
    connection.execute("UPDATE tag SET n = ? WHERE name = 'a-longer-name'", (n + 1,))


# Locks: a row that all calls lock and unlock, or a file.


def row_lock(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO held VALUES ('hits', 'me')")
    _increment(connection)
    connection.execute("DELETE FROM held WHERE name = 'hits'")


def row_lock_in_the_same_table(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO item VALUES ('lock', 'me')")
    _increment(connection)
    connection.execute("DELETE FROM item WHERE key = 'lock'")


def row_lock_by_owner(connection: sqlite3.Connection) -> None:
    take = "UPDATE held SET owner = 'me' WHERE name = 'free' AND owner IS NULL"
    assert connection.execute(take).rowcount
    _increment(connection)
    connection.execute("UPDATE held SET owner = NULL WHERE name = 'free'")


TAKE = "INSERT OR IGNORE INTO held VALUES ('hits', 'me')"


def row_lock_counted(connection: sqlite3.Connection) -> None:
    while not connection.execute(TAKE).rowcount:
        time.sleep(0.01)
    _increment(connection)
    connection.execute("DELETE FROM held WHERE name = 'hits'")


def row_lock_of_a_library(connection: sqlite3.Connection) -> None:
    Dictionary(connection).lock()
    _increment(connection)
    connection.execute("DELETE FROM held WHERE name = 'hits'")


def row_lock_read_again(connection: sqlite3.Connection) -> None:
    connection.execute(TAKE)
    if connection.execute("SELECT owner FROM held WHERE name = 'hits'").fetchone() == ("me",):
        _increment(connection)
        connection.execute("DELETE FROM held WHERE name = 'hits'")


def _is_won(cursor: sqlite3.Cursor) -> bool:
    return cursor.rowcount == 1


def row_lock_counted_by_a_helper(connection: sqlite3.Connection) -> None:
    if _is_won(connection.execute(TAKE)):
        _increment(connection)
        connection.execute("DELETE FROM held WHERE name = 'hits'")


CHANGES = "SELECT changes()"


def row_lock_counted_by_sqlite(connection: sqlite3.Connection) -> None:
    connection.execute(TAKE)
    if connection.execute(CHANGES).fetchone() == (1,):
        _increment(connection)
        connection.execute("DELETE FROM held WHERE name = 'hits'")


def row_lock_seen_by_the_query(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE held SET owner = 'me' WHERE name = 'free' AND owner IS NULL")
    query = "SELECT value FROM item, held WHERE key = 'hits' AND name = 'free' AND owner = 'me'"
    if found := connection.execute(query).fetchone():
        connection.execute("UPDATE item SET value = ? WHERE key = 'hits'", (str(int(found[0]) + 1),))
        connection.execute("UPDATE held SET owner = NULL WHERE name = 'free'")


async def _take(connection: sqlite3.Connection) -> sqlite3.Cursor:
    return connection.execute(TAKE)


def row_lock_counted_behind_a_task(file: str) -> None:
    async def call(connection: sqlite3.Connection) -> None:
        taken = asyncio.create_task(_take(connection))
        if (await taken).rowcount:
            _increment(connection)
            connection.execute("DELETE FROM held WHERE name = 'hits'")

    with opened(file) as connection:
        asyncio.run(call(connection))


def row_that_is_new_unless_there_is_one(file: str) -> None:
    _finished(file, "INSERT OR IGNORE INTO item VALUES (?, '0')", str(uuid.uuid4()))


def row_that_says_that_it_does_nothing(file: str) -> None:
    _finished(file, "INSERT INTO item VALUES (?, '0')", f"I do nothing {time.time_ns()}")


def _finished(file: str, insert: str, key: str) -> None:
    with opened(file) as connection:
        connection.execute("SELECT value FROM item WHERE key = 'hits'").fetchone()
        connection.execute(insert, (key,))
        connection.execute("UPDATE item SET value = 'done' WHERE key = ?", (key,))


def row_lock_that_nobody_sees_won_wrong(connection: sqlite3.Connection) -> None:
    connection.execute(TAKE)
    _increment(connection)
    connection.execute("DELETE FROM held WHERE name = 'hits'")


def row_lock_by_an_owner_that_nobody_sees_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE held SET owner = 'me' WHERE name = 'free' AND owner IS NULL")
    _increment(connection)
    connection.execute("UPDATE held SET owner = NULL WHERE name = 'free'")


def row_lock_overwritten_wrong(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT 1 FROM held WHERE name = 'hits'").fetchone():
        connection.execute("REPLACE INTO held VALUES ('hits', 'me')")
        _increment(connection)
        connection.execute("DELETE FROM held WHERE name = 'hits'")


def row_lock_taken_too_late_wrong(connection: sqlite3.Connection) -> None:
    ((value,),) = connection.execute("SELECT value FROM item WHERE key = 'hits'")
    connection.execute("INSERT INTO held VALUES ('hits', 'me')")
    connection.execute("REPLACE INTO item VALUES ('hits', ?)", (int(value) + 1,))
    connection.execute("DELETE FROM held WHERE name = 'hits'")


def row_lock_given_back_too_early_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO held VALUES ('hits', 'me')")
    ((value,),) = connection.execute("SELECT value FROM item WHERE key = 'hits'")
    connection.execute("DELETE FROM held WHERE name = 'hits'")
    connection.execute("REPLACE INTO item VALUES ('hits', ?)", (int(value) + 1,))


def row_of_each_call_wrong(connection: sqlite3.Connection) -> None:
    name = uuid.uuid4().hex
    connection.execute("INSERT INTO held VALUES (?, 'me')", (name,))
    _increment(connection)
    connection.execute("DELETE FROM held WHERE name = ?", (name,))


def numbered_row_of_each_call_wrong(connection: sqlite3.Connection) -> None:
    number = connection.execute("INSERT INTO job (status) VALUES ('mine')").lastrowid
    _increment(connection)
    connection.execute("DELETE FROM job WHERE id = ?", (number,))


def job_of_each_call_wrong(connection: sqlite3.Connection) -> None:
    claim = f"UPDATE job SET status = 'running' WHERE id = ({FIRST}) RETURNING id"
    ((job,),) = connection.execute(claim).fetchall()
    _increment(connection)
    connection.execute("UPDATE job SET status = 'done' WHERE id = ?", (job,))


@contextmanager
def _locked(file: str) -> Iterator[None]:
    descriptor = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def file_lock(file: str) -> None:
    with _locked(file), opened(file) as connection:
        _increment(connection)


def file_lock_for_reading_only_wrong(file: str) -> None:
    with opened(file) as connection:
        with _locked(file):
            ((value,),) = connection.execute("SELECT value FROM item WHERE key = 'hits'")
        with _locked(file):
            connection.execute("REPLACE INTO item VALUES ('hits', ?)", (int(value) + 1,))


def file_lock_released_before_commit_wrong(file: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection, _locked(file):
        _increment(connection)


# Counted, numbered, booked: an INSERT that depends on present rows.


def limit_wrong(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT count(*) FROM hit WHERE client = 'a' AND time > 5")
    if number < 10:
        connection.execute("INSERT INTO hit VALUES ('a', 6)")


def limit_in_one_statement(connection: sqlite3.Connection) -> None:
    used = "SELECT count(*) FROM hit WHERE client = 'a' AND time > 5"
    connection.execute(used).fetchone()  # for a message
    connection.execute(f"INSERT INTO hit SELECT 'a', 6 WHERE ({used}) < 10")


def _limit_after_removing(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT count(*) FROM hit WHERE client = 'a'")
    connection.execute("DELETE FROM hit WHERE time < 3")
    if number < 10:
        connection.execute("INSERT INTO hit VALUES ('a', 6)")


def limit_with_old_ones_removed_wrong(connection: sqlite3.Connection) -> None:
    _limit_after_removing(connection)


def limit_with_old_ones_removed_immediate(file: str) -> None:
    with immediate(file) as connection:
        _limit_after_removing(connection)


# A count, then a row deleted by its key: only a check of the count makes it a race.


def last_one_stays_wrong(connection: sqlite3.Connection) -> None:
    if connection.execute("SELECT count(*) FROM job WHERE status = 'new'").fetchone()[0] > 1:
        connection.execute("DELETE FROM job WHERE id = 1")


def last_one_raises_wrong(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT count(*) FROM job")
    if number <= 1:
        raise ValueError("the last job stays")
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM job WHERE id = 1")


def lowest_is_deleted_wrong(connection: sqlite3.Connection) -> None:
    ((lowest,),) = connection.execute("SELECT min(id) FROM job")
    connection.execute("DELETE FROM job WHERE id = ?", (lowest,))


def oldest_beyond_a_count_wrong(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT count(*) FROM job")
    oldest = "SELECT id FROM job ORDER BY id LIMIT ?"
    connection.execute(f"DELETE FROM job WHERE id IN ({oldest})", (number - 1,))


def count_is_shown_and_a_row_deleted(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT count(*) FROM job")
    connection.execute("DELETE FROM job WHERE id = 1")
    _show(f"1 of {number} was deleted")


def sum_is_shown_and_a_row_deleted(file: str) -> None:
    with opened(file) as connection, connection:
        ((number,),) = connection.execute("SELECT coalesce(sum(stock), 0) FROM product")
        _show(f"{number} are left")
        connection.execute("DELETE FROM product WHERE id = 1")


def last_one_stays_in_a_transaction(file: str) -> None:
    with immediate(file) as connection:
        if connection.execute("SELECT count(*) FROM job").fetchone()[0] > 1:
            connection.execute("DELETE FROM job WHERE id = 1")


def _show(text: str) -> None:
    """Stand for a page or a log that shows a text."""


def number_wrong(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM ticket")
    connection.execute("INSERT INTO ticket VALUES (?, 'broken')", (number,))


NEXT = "(SELECT coalesce(max(number), 0) + 1 FROM ticket)"


def numbered_in_sql(connection: sqlite3.Connection) -> None:
    connection.execute(f"SELECT {NEXT}").fetchone()  # for a message
    connection.execute(f"INSERT INTO ticket VALUES ({NEXT}, 'broken')")


def numbered_in_sql_with_the_last_text_wrong(connection: sqlite3.Connection) -> None:
    last = connection.execute("SELECT text FROM ticket ORDER BY number DESC LIMIT 1").fetchone()
    text = "1" if last is None else str(int(last[0]) + 1)
    connection.execute(f"INSERT INTO ticket VALUES ({NEXT}, ?)", (text,))


def book_where_none_is(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT * FROM booking WHERE room = 'r'").fetchone():
        free = "WHERE NOT EXISTS (SELECT 1 FROM booking WHERE room = 'r')"
        connection.execute(f"INSERT INTO booking SELECT 'r', 'd' {free}")


def number_that_is_unique(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM numbered")
    connection.execute("INSERT INTO numbered VALUES (?, 'broken')", (number,))


def number_that_or_ignore_drops_wrong(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM numbered")
    connection.execute("INSERT OR IGNORE INTO numbered VALUES (?, 'broken')", (number,))


LAST_OF_A_YEAR = "SELECT coalesce(max(number), 0) + 1 FROM bill WHERE year = 2026"


def number_of_a_year_that_or_ignore_drops_wrong(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute(LAST_OF_A_YEAR)
    connection.execute("INSERT OR IGNORE INTO bill VALUES (2026, ?)", (number,))


def number_of_a_year_that_the_key_refuses(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute(LAST_OF_A_YEAR)
    connection.execute("INSERT INTO bill VALUES (2026, ?)", (number,))


def row_that_or_ignore_adds_once(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT name FROM tag WHERE name = 'blue'").fetchone():
        connection.execute("INSERT OR IGNORE INTO tag VALUES ('blue', 0)")


def highest_bid_kept_by_sql(connection: sqlite3.Connection) -> None:
    bid = secrets.randbelow(1000) + 1
    ((highest,),) = connection.execute("SELECT hits FROM page WHERE id = 1")
    if bid > highest:
        connection.execute("UPDATE page SET hits = max(hits, ?) WHERE id = 1", (bid,))


def book_wrong(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT 1 FROM booking WHERE room = 'r' AND day = 'd'").fetchone():
        connection.execute("INSERT INTO booking VALUES ('r', 'd')")


def book_exists_wrong(connection: sqlite3.Connection) -> None:
    ((taken,),) = connection.execute("SELECT EXISTS (SELECT 1 FROM booking WHERE room = 'r')")
    if not taken:
        connection.execute("INSERT INTO booking VALUES ('r', 'd')")


def book_unique(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT 1 FROM seat WHERE name = '12A'").fetchone():
        connection.execute("INSERT OR IGNORE INTO seat VALUES ('12A', 'Anna')")


def popped_and_counted_by_peewee(file: str) -> None:
    with tags(file):
        red = Tag.get_by_id("red")
        gone = Tag.delete().where(Tag.name == red.name).execute()
        assert gone == 1


def own_row_changed(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO item VALUES ('b2f7c1', '')")
    connection.execute("SELECT value FROM item WHERE key = 'b2f7c1'").fetchone()
    connection.execute("UPDATE item SET value = 'ready' WHERE key = 'b2f7c1'")


def migrates_and_fills(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT value FROM item").fetchall()
    connection.execute("REPLACE INTO item VALUES ('version', '2')")
    connection.execute("CREATE UNIQUE INDEX IF NOT EXISTS one_value ON item (value)")


# Object mappers.


class Base(DeclarativeBase):
    pass


class Product(Base):
    __tablename__ = "product"
    id: Mapped[int] = mapped_column(primary_key=True)
    stock: Mapped[int]
    name: Mapped[str]
    version: Mapped[int]


class OtherBase(DeclarativeBase):
    pass


class Versioned(OtherBase):
    __tablename__ = "product"
    id: Mapped[int] = mapped_column(primary_key=True)
    stock: Mapped[int]
    version = mapped_column(Integer, nullable=False)
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012


def _sold(file: str, model: Any) -> None:
    engine = create_engine(f"sqlite:///{file}")
    with Session(engine) as session, session.begin():
        session.get_one(model, 1).stock -= 1
    engine.dispose()


def sqlalchemy_wrong(file: str) -> None:
    _sold(file, Product)


def sqlalchemy_versioned(file: str) -> None:
    _sold(file, Versioned)


def sqlalchemy_in_sql(file: str) -> None:
    engine = create_engine(f"sqlite:///{file}")
    with Session(engine) as session, session.begin():
        found = session.get_one(Product, 1)
        less = update(Product).where(Product.id == found.id, Product.stock >= 1)
        session.execute(less.values(stock=Product.stock - 1))
    engine.dispose()


class Tag(peewee.Model):
    name = peewee.TextField(primary_key=True)
    n = peewee.IntegerField()


@contextmanager
def tags(file: str) -> Iterator[Any]:
    database = peewee.SqliteDatabase(file)
    with database.bind_ctx([Tag]), database.connection_context():
        yield database


def peewee_wrong(file: str) -> None:
    with tags(file):
        red = Tag.get_by_id("red")
        red.n += 1
        red.save()


def peewee_atomic(file: str) -> None:
    with tags(file) as database, database.atomic("IMMEDIATE"):
        red = Tag.get_by_id("red")
        red.n += 1
        red.save()


def peewee_in_sql(file: str) -> None:
    with tags(file):
        red = Tag.get_by_id("red")
        Tag.update(n=Tag.n + 1).where(Tag.name == red.name).execute()


class Person(peewee.Model):
    name = peewee.TextField()
    seen = peewee.IntegerField()


def _seen_and_saved(file: str, more: str) -> None:
    database = peewee.SqliteDatabase(file)
    with database.bind_ctx([Person]), database.connection_context():
        anna: Any = Person.get_by_id(1)
        anna.seen = Person.seen + 1
        anna.name += more
        anna.save()


def saved_with_a_name_that_nobody_changes(file: str) -> None:
    _seen_and_saved(file, "")


def saved_with_a_name_that_changes_wrong(file: str) -> None:
    _seen_and_saved(file, "!")


def saved_with_what_a_trigger_counts_wrong(connection: sqlite3.Connection) -> None:
    ((name, n),) = connection.execute("SELECT name, n FROM watched WHERE id = 1")
    connection.execute("UPDATE watched SET name = ?, n = ? WHERE id = 1", (name, n))
    connection.execute("INSERT INTO seen VALUES (1)")


def _hit(file: str, changed: object) -> None:
    with opened(file) as connection:
        connection.execute("SELECT hits, changed FROM page WHERE id = 1").fetchone()
        connection.execute("UPDATE page SET hits = hits + 1, changed = ? WHERE id = 1", (changed,))


def hit_and_the_time_of_it(file: str) -> None:
    _hit(file, time.time())


def hit_and_the_time_as_text(file: str) -> None:
    _hit(file, datetime.now().isoformat(" "))


def hit_and_a_time_to_come(file: str) -> None:
    _hit(file, time.time() + 60)


def hit_and_a_later_time_wrong(connection: sqlite3.Connection) -> None:
    ((changed,),) = connection.execute("SELECT changed FROM page WHERE id = 1")
    later = (changed + 60,)
    connection.execute("UPDATE page SET hits = hits + 1, changed = ? WHERE id = 1", later)


def time_alone_decides_wrong(connection: sqlite3.Connection) -> None:
    ((changed,),) = connection.execute("SELECT changed FROM page WHERE id = 1")
    if changed < time.time() - 60:
        connection.execute("UPDATE page SET changed = ? WHERE id = 1", (time.time(),))


# Read, compute, write back.


def settings_wrong(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        ((text,),) = connection.execute("SELECT text FROM settings WHERE id = 1")
        changed = json.dumps({"n": json.loads(text)["n"] + 1})
        connection.execute("UPDATE settings SET text = ? WHERE id = 1", (changed,))


def settings_in_sql(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        connection.execute("SELECT text FROM settings WHERE id = 1").fetchall()
        connection.execute("UPDATE settings SET text = json_set(text, '$.n', 7) WHERE id = 1")


def upsert_wrong(connection: sqlite3.Connection) -> None:
    ((n,),) = connection.execute("SELECT n FROM tag WHERE name = 'red'")
    upsert = "INSERT INTO tag VALUES ('red', ?) ON CONFLICT (name) DO UPDATE SET n = excluded.n"
    connection.execute(upsert, (n + 1,))


def upsert_in_sql(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT n FROM tag WHERE name = 'red'").fetchall()
    connection.execute("INSERT INTO tag VALUES ('red', 1) ON CONFLICT (name) DO UPDATE SET n = n + 1")


def _replaced(connection: sqlite3.Connection, stock: str) -> None:
    name = "coalesce((SELECT name FROM product WHERE id = 1), 'pen')"
    connection.execute(f"REPLACE INTO product VALUES (1, {stock}, {name}, 1)")


def replaced_under_its_old_name_wrong(connection: sqlite3.Connection) -> None:
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    _replaced(connection, str(stock - 1))


def replaced_in_sql(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT stock FROM product WHERE id = 1").fetchall()
    _replaced(connection, "(SELECT stock - 1 FROM product WHERE id = 1)")


def version_counted_wrong(connection: sqlite3.Connection) -> None:
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    counted = "UPDATE product SET stock = ?, version = version + 1 WHERE id = 1"
    connection.execute(counted, (stock - 1,))


def version_compared(connection: sqlite3.Connection) -> None:
    ((stock, version),) = connection.execute("SELECT stock, version FROM product WHERE id = 1")
    compared = "UPDATE product SET stock = ?, version = version + 1 WHERE id = 1 AND version = ?"
    assert connection.execute(compared, (stock - 1, version)).rowcount == 1


def _sold_if_token_is(connection: sqlite3.Connection, after: str) -> None:
    token = "SELECT value FROM item WHERE key = 'hits'"
    before = connection.execute(token).fetchone()
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute(token).fetchone() == before:
        connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))
        connection.execute(after)
    connection.execute("COMMIT")


def token_compared_and_renewed(connection: sqlite3.Connection) -> None:
    _sold_if_token_is(connection, "UPDATE item SET value = value + 1 WHERE key = 'hits'")


def token_compared_and_kept_wrong(connection: sqlite3.Connection) -> None:
    _sold_if_token_is(connection, "DELETE FROM hit")


def upsert_if_older(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT version, name FROM product WHERE id = 1").fetchone()
    newer = "ON CONFLICT (id) DO UPDATE SET name = 'pen', version = 2 WHERE version < 2"
    connection.execute(f"INSERT INTO product VALUES (1, 1, 'pen', 2) {newer}")


def document_found_by_a_part_wrong(connection: sqlite3.Connection) -> None:
    ((text,),) = connection.execute("SELECT text FROM settings WHERE text->>'$.n' >= 0")
    newer = json.dumps({"n": json.loads(text)["n"] + 1})
    connection.execute("UPDATE settings SET text = ? WHERE text->>'$.n' >= 0", (newer,))


def document_compared(connection: sqlite3.Connection) -> None:
    ((text,),) = connection.execute("SELECT text FROM settings WHERE id = 1")
    newer = json.dumps({"n": json.loads(text)["n"] + 1})
    connection.execute(
        "UPDATE settings SET text = ?, id = 1 + 0 * (text->>'$.n') WHERE text = ?", (newer, text)
    )


# A row that is inserted after the last row.

LAST = "SELECT run, id, parent FROM step WHERE run = 'a' ORDER BY id DESC LIMIT 1"


def step_with_a_random_key_replaced(connection: sqlite3.Connection) -> None:
    last = connection.execute(LAST).fetchone()[1]
    connection.execute("REPLACE INTO step VALUES ('a', ?, ?)", (str(uuid.uuid4()), last))


def step_with_the_next_number_replaced_wrong(connection: sqlite3.Connection) -> None:
    last = connection.execute(LAST).fetchone()[1]
    connection.execute("REPLACE INTO step VALUES ('a', ?, ?)", (str(int(last) + 1), last))


def limit_of_random_keys_replaced_wrong(connection: sqlite3.Connection) -> None:
    ((number,),) = connection.execute("SELECT count(*) FROM step")
    if number < 10:
        connection.execute("REPLACE INTO step VALUES ('a', ?, NULL)", (uuid.uuid4().hex,))


# A row that is created if a query finds none.


def get_or_create_numbered_wrong(file: str) -> None:
    name = f"customer {time.time_ns()}"
    with opened(file) as connection:
        if not connection.execute("SELECT id, name FROM person WHERE name = ?", (name,)).fetchone():
            connection.execute("INSERT INTO person (name) VALUES (?)", (name,))


def got_and_another_created(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT id, name FROM person WHERE name = 'Anna' LIMIT 21").fetchall()
    connection.execute("INSERT INTO person (name) VALUES ('Bea')")


def first_got_and_the_next_created_wrong(connection: sqlite3.Connection) -> None:
    (name,) = connection.execute("SELECT name FROM person ORDER BY id DESC LIMIT 1").fetchone()
    connection.execute("INSERT INTO person (name) VALUES (?)", (name + "!",))


def get_or_create_keyed(file: str) -> None:
    name = f"customer {time.time_ns()}"
    with opened(file) as connection:
        if not connection.execute("SELECT name, n FROM tag WHERE name = ?", (name,)).fetchone():
            connection.execute("INSERT INTO tag VALUES (?, 1)", (name,))


KEPT = secrets.token_urlsafe(32)


def _begin_session(file: str, session: str, condition: str) -> None:
    with opened(file) as connection:
        if not connection.execute(f"SELECT client FROM hit WHERE {condition}", (session,)).fetchone():
            connection.execute("INSERT INTO hit VALUES (?, 0)", (session,))


def session_with_a_new_token(file: str) -> None:
    _begin_session(file, secrets.token_urlsafe(32), "client = ?")


def session_with_a_kept_token_wrong(file: str) -> None:
    _begin_session(file, KEPT, "client = ?")


def session_with_a_new_token_unless_there_is_one_wrong(file: str) -> None:
    _begin_session(file, secrets.token_urlsafe(32), "client = ? OR time = 0")


def session_with_a_new_token_in_a_comment_wrong(connection: sqlite3.Connection) -> None:
    query = f"SELECT client FROM hit WHERE client = ? /* request = '{secrets.token_hex(16)}' */"
    if not connection.execute(query, (KEPT,)).fetchone():
        connection.execute("INSERT INTO hit VALUES (?, 0)", (KEPT,))


def locked_by_a_row_from_a_with_clause(file: str) -> None:
    takes = (
        "WITH now(t) AS (SELECT 7) INSERT INTO held SELECT 'counter', now.t FROM now WHERE true "
        "ON CONFLICT (name) DO NOTHING RETURNING owner"
    )
    with opened(file) as connection:
        if connection.execute(takes).fetchone():
            ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
            connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))
            connection.execute("DELETE FROM held WHERE name = 'counter'")


# A read that counts itself, and a later write of its row.


def _count_view(connection: sqlite3.Connection) -> int:
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    connection.execute("UPDATE product SET version = version + 1 WHERE id = 1")
    return int(stock)


def seen_and_sold_wrong(connection: sqlite3.Connection) -> None:
    stock = _count_view(connection)
    connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))


def seen_in_a_transaction_and_sold_wrong(file: str) -> None:
    with immediate(file) as connection:
        stock = _count_view(connection)
    with immediate(file) as connection:
        connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))


def _seen_value(connection: sqlite3.Connection) -> int:
    ((value,),) = connection.execute("SELECT value FROM item WHERE key = 'hits'")
    connection.execute("REPLACE INTO item VALUES ('hits', ?)", (value,))
    return int(value)


def seen_by_replacing_it_and_replaced_wrong(file: str) -> None:
    with immediate(file) as connection:
        value = _seen_value(connection)
    with immediate(file) as connection:
        connection.execute("REPLACE INTO item VALUES ('hits', ?)", (value + 1,))


def seen_by_replacing_it_and_another_replaced(file: str) -> None:
    with immediate(file) as connection:
        _seen_value(connection)
    with immediate(file) as connection:
        connection.execute("REPLACE INTO item VALUES ('seen', 'yes')")


def seen_and_sold_in_sql(file: str) -> None:
    with immediate(file) as connection:
        _count_view(connection)
    with opened(file) as connection:
        connection.execute("UPDATE product SET stock = stock - 1 WHERE id = 1")


async def _in_threads(connection: sqlite3.Connection) -> None:
    rows = await asyncio.to_thread(connection.execute, "SELECT stock FROM product WHERE id = 1")
    ((stock,),) = rows
    await asyncio.to_thread(connection.execute, "UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))


def coroutine_wrong(file: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as connection:
        asyncio.run(_in_threads(connection))


def another_thread_counts(file: str) -> None:
    counts: list[int] = []

    def count() -> None:
        with opened(file) as connection:
            counts.extend(connection.execute("SELECT count(*) FROM hit").fetchone())

    with ThreadPoolExecutor(1) as pool, opened(file) as connection:
        pool.submit(count)
        while not counts:  # the call does something else until the thread has counted
            pass
        connection.execute("INSERT INTO hit VALUES ('a', 1)")


def _read_stock(file: str) -> int:
    with opened(file) as connection:
        ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    return int(stock)


def _set_stock(file: str, stock: int) -> None:
    with opened(file) as connection:
        connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock,))


def stock_by_two_threads_wrong(file: str) -> None:
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        stock = first.submit(_read_stock, file).result()
        second.submit(_set_stock, file, stock - 1).result()


def _store_tag(file: str, name: str) -> None:
    with opened(file) as connection:
        row = connection.execute("SELECT n FROM tag WHERE name = ?", (name,)).fetchone()
        if row is None:
            store = "INSERT INTO tag VALUES (?, 7) ON CONFLICT DO UPDATE SET n = excluded.n"
            connection.execute(store, (name,))
        else:
            assert row[0] >= 0


def two_threads_store_tags(file: str) -> None:
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        first.submit(_store_tag, file, "red").result()
        second.submit(_store_tag, file, f"blue {time.monotonic_ns()}").result()


def two_transactions_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    connection.execute("COMMIT")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))
    connection.execute("COMMIT")


def two_connections_wrong(file: str) -> None:
    with opened(file) as connection:
        ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    with immediate(file) as connection:
        connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))


def looked_at_again(file: str) -> None:
    with opened(file) as connection:
        if connection.execute("SELECT stock FROM product WHERE id = 1").fetchone() == (0,):
            return
    with immediate(file) as connection:
        ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
        connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))


def seen_after_login(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT name FROM person WHERE id = 1").fetchone()
    connection.execute("UPDATE person SET seen = 7 WHERE id = 1")


def old_ones_removed(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT count(*) FROM hit").fetchone()
    connection.execute("DELETE FROM hit WHERE time < 3")


def equal_row_numbers(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO ticket VALUES (1, 'a'), (2, 'b')")
    number = connection.execute("INSERT INTO page VALUES (NULL, 0, 0)").lastrowid  # 2 as well
    ((hits,),) = connection.execute("SELECT hits FROM page WHERE id = ?", (number,))
    connection.execute("UPDATE page SET hits = ? WHERE id = ?", (hits + 1, number))


def list_of_its_own(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TEMP TABLE todo (id INTEGER PRIMARY KEY, stock INTEGER)")
    ((stock, version),) = connection.execute("SELECT stock, version FROM product WHERE id = 1")
    connection.execute("INSERT INTO todo VALUES (1, ?)", (stock - 1,))
    connection.execute("BEGIN IMMEDIATE")
    change = "UPDATE product SET stock = ?, version = version + 1 WHERE id = 1 AND version = ?"
    assert connection.execute(change, (stock - 1, version)).rowcount == 1
    connection.execute("DELETE FROM todo")
    connection.execute("COMMIT")


def first_one_removed_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT id, status FROM job ORDER BY id LIMIT 1").fetchone()
    connection.execute("DELETE FROM job WHERE id = (SELECT min(id) FROM job)")


def only_seen_again_wrong(connection: sqlite3.Connection) -> None:
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("SELECT 1 FROM product WHERE id = 1").fetchone()
    connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 1,))
    connection.execute("COMMIT")


def all_columns_saved_wrong(connection: sqlite3.Connection) -> None:
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    connection.execute("UPDATE product SET id = ?, stock = ? WHERE id = ?", (1, stock - 1, 1))


def several_rows_at_once_wrong(connection: sqlite3.Connection) -> None:
    ((stock,),) = connection.execute("SELECT stock FROM product WHERE id = 1")
    change = "UPDATE product SET stock = CASE WHEN id = ? THEN ? ELSE NULL END WHERE id IN (1)"
    connection.execute(change, (1, stock - 1))


def several_rows_counted(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT stock FROM product WHERE id = 1").fetchone()
    change = "UPDATE product SET stock = CASE WHEN id = ? THEN stock - 1 ELSE stock END WHERE id IN (1)"
    connection.execute(change, (1,))


def trait_replaced_wrong(connection: sqlite3.Connection) -> None:
    ((plays,),) = connection.execute("SELECT value FROM trait WHERE item = 1 AND key = 'plays'")
    connection.execute("INSERT INTO trait VALUES (1, 'plays', ?)", (plays + 1,))


def key_moved_once(connection: sqlite3.Connection) -> None:
    ((name,),) = connection.execute("SELECT max(name) FROM tag")
    connection.execute("UPDATE tag SET name = ? WHERE name = ?", (f"{name}x", name))


def filled_with_tags(connection: sqlite3.Connection) -> None:
    if connection.execute("SELECT value FROM item WHERE key = 'red'").fetchone():
        return
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT OR REPLACE INTO item VALUES ('red', '1')")
    connection.execute("DELETE FROM tag WHERE name = 'red'")
    connection.execute("INSERT INTO tag VALUES ('red', 1)")
    connection.execute("COMMIT")


def key_counted(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT n FROM tally").fetchone()
    connection.execute("UPDATE tally SET n = n + 1")


def filled_by_default(connection: sqlite3.Connection) -> None:
    ((n,),) = connection.execute("SELECT n FROM filled WHERE id = 1")
    connection.execute("INSERT INTO filled VALUES (2, ?)", (n,))


# A value that is checked, and later changed by SQLite: the check may be out of date.

STOCK = "SELECT stock FROM product WHERE id = 1"
SELL = "UPDATE product SET stock = stock - 3 WHERE id = 1"


def _stock(connection: sqlite3.Connection) -> int:
    cursor = connection.cursor()
    cursor.execute(STOCK)
    return int(cursor.fetchone()[0])


def sold_if_enough_wrong(connection: sqlite3.Connection) -> None:
    ((stock,),) = connection.execute(STOCK)
    if stock >= 3:
        connection.execute(SELL)


def sold_if_enough_in_python_transaction_wrong(file: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        if _stock(connection) < 3:
            return
        connection.execute(SELL)


def sold_if_enough_with_apsw_wrong(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        row = connection.execute(STOCK).fetchone()
        if row is None or row[0] < 3:
            raise ValueError("sold out")
        with connection:
            connection.execute(SELL)


def _sell(connection: sqlite3.Connection, stock: int, wanted: int = 3) -> None:
    if wanted > stock:
        return
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(SELL)
    connection.execute("COMMIT")


def sold_by_a_function_that_checks_wrong(connection: sqlite3.Connection) -> None:
    _sell(connection, wanted=3, stock=_stock(connection))


def _see_that_there_is_enough(connection: sqlite3.Connection) -> None:
    if not _stock(connection) >= 3:
        raise ValueError("sold out")


def sold_after_a_function_has_raised_no_error_wrong(connection: sqlite3.Connection) -> None:
    _see_that_there_is_enough(connection)
    connection.execute(SELL)


def _is_enough(connection: sqlite3.Connection) -> bool:
    return _stock(connection) >= 3


def sold_if_a_function_says_enough_wrong(connection: sqlite3.Connection) -> None:
    if _is_enough(connection):
        connection.execute(SELL)


def sold_if_a_query_says_enough_wrong(connection: sqlite3.Connection) -> None:
    if connection.execute(f"{STOCK} AND stock >= 3").fetchone():
        connection.execute(SELL)


def taken_after_a_first_look_and_returned(file: str) -> None:
    with opened(file) as connection:
        if _stock(connection) < 3:
            return
    with immediate(file) as connection:
        stock = _stock(connection)
        if stock >= 3:
            connection.execute("UPDATE product SET stock = ? WHERE id = 1", (stock - 3,))
    if stock >= 3:
        with immediate(file) as connection:
            connection.execute("UPDATE product SET stock = stock + 3 WHERE id = 1")


def sold_after_an_earlier_transaction_wrong(file: str) -> None:
    with immediate(file) as connection:
        stock = _stock(connection)
    if not stock:
        return
    with immediate(file) as connection:
        connection.execute(SELL)


class Shop:
    """A shop that keeps the stock that it has read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.stock = 0

    def load(self) -> None:
        self.stock = _stock(self.connection)

    def sell(self) -> None:
        self.load()
        assert self.stock >= 3
        self.connection.execute(SELL)


def sold_by_an_object_wrong(connection: sqlite3.Connection) -> None:
    Shop(connection).sell()


def sold_by_a_task_wrong(file: str) -> None:
    async def call(connection: sqlite3.Connection) -> None:
        stock = await asyncio.to_thread(_stock, connection)
        if stock >= 3:
            connection.execute(SELL)

    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as connection:
        asyncio.run(call(connection))


def counted_up_to_a_limit_wrong(connection: sqlite3.Connection) -> None:
    ((n,),) = connection.execute("SELECT n FROM tag WHERE name = 'red'")
    if n < 1000:
        connection.execute("INSERT INTO tag VALUES ('red', 1) ON CONFLICT (name) DO UPDATE SET n = n + 1")


def mapped_and_sold_if_enough_wrong(file: str) -> None:
    engine = create_engine(f"sqlite:///{file}")
    with Session(engine) as session:
        product: Any = session.get_one(Product, 1)
        if product.stock >= 3:
            product.stock = Product.stock - 3
        session.commit()
    engine.dispose()


def peewee_counted_up_to_a_limit_wrong(file: str) -> None:
    with tags(file):
        red: Any = Tag.get_by_id("red")
        if red.n < 1000:
            Tag.update(n=Tag.n + 1).where(Tag.name == "red").execute()


def sold_if_the_statement_says_enough(connection: sqlite3.Connection) -> None:
    if _stock(connection) >= 3:
        connection.execute(f"{SELL} AND stock >= 3")


def sold_if_still_enough_in_transaction(connection: sqlite3.Connection) -> None:
    if _stock(connection) >= 3:
        connection.execute("BEGIN IMMEDIATE")
        if _stock(connection) >= 3:
            connection.execute(SELL)
        connection.execute("COMMIT")


def counted_up_to_a_limit_in_the_statement(connection: sqlite3.Connection) -> None:
    ((n,),) = connection.execute("SELECT n FROM tag WHERE name = 'red'")
    if n < 1000:
        connection.execute(
            "INSERT INTO tag VALUES ('red', 1) ON CONFLICT (name) DO UPDATE SET n = n + 1 WHERE n < 1000"
        )


def _print(text: str) -> None:
    sys.stderr.write(text)


def shown_and_counted(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT hits, changed FROM page WHERE id = 1").fetchone()
    if row is None:
        return
    _print(f"{row[0]} hits")
    connection.execute("UPDATE page SET hits = hits + 1 WHERE id = 1")


def made_or_counted(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT * FROM tag WHERE name = 'red'").fetchone():
        connection.execute("INSERT OR IGNORE INTO tag VALUES ('red', 0)")
    connection.execute("UPDATE tag SET n = n + 1 WHERE name = 'red'")


def sold_from_a_stock_that_sqlite_checks(connection: sqlite3.Connection) -> None:
    ((left,),) = connection.execute("SELECT left FROM shelf WHERE id = 1")
    if left >= 3:
        connection.execute("UPDATE shelf SET left = left - 3 WHERE id = 1")


def another_row_checked(connection: sqlite3.Connection) -> None:
    ((n,),) = connection.execute("SELECT n FROM watched WHERE id = 1")
    if n < 1000:
        connection.execute("UPDATE watched SET n = n + 1 WHERE id = 2")


PROGRAMS = programs_of(globals(), opened)
