"""Transactions in the style of web applications: each function makes the statements of one call. Names of
functions with a race end with `wrong`.

Each function gets a connection to a database with SCHEMA, or its path. The right ones read rows that they
only show; in the wrong ones the values of a write, or whether it runs, follow from the rows.
"""

from __future__ import annotations

import hashlib
import json
import random
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import apsw
import peewee
from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from tests.races.programs import programs_of

SCHEMA = """
CREATE TABLE message (id INTEGER PRIMARY KEY, author TEXT NOT NULL, body TEXT NOT NULL, created REAL);
CREATE TABLE member (id INTEGER PRIMARY KEY, email TEXT, plan TEXT, credits INTEGER, seen REAL);
CREATE TABLE session (token TEXT PRIMARY KEY, member INTEGER, seen REAL, data TEXT);
CREATE TABLE cache (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE invoice (id INTEGER PRIMARY KEY, number INTEGER, total INTEGER);
CREATE TABLE vote (poll INTEGER, voter TEXT, choice TEXT, UNIQUE (poll, voter));
INSERT INTO member VALUES (1, 'a@x', 'free', 100, 0);
INSERT INTO session VALUES ('token', 1, 0, '{}');
"""


@contextmanager
def opened(file: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


POST = "INSERT INTO message (author, body, created) VALUES ('anna', ?, ?)"
FEED = "SELECT id, author, body FROM message ORDER BY id DESC LIMIT 20"


def _show(text: str) -> None:
    """Stand for a page or a log that shows a text."""


# Rows that are only shown before a row is added.


def feed_shown(connection: sqlite3.Connection) -> None:
    rows = connection.execute(FEED).fetchall()
    _show("\n".join(f"{row['author']}: {row['body']}" for row in rows))
    connection.execute(POST, (f"hello {random.random()}", time.time()))


def feed_counted_in_a_text_that_is_cut(connection: sqlite3.Connection) -> None:
    rows = connection.execute(FEED).fetchall()
    text = f"hello {len(rows)}"[:5] + str(random.random())
    connection.execute(POST, (text, time.time()))


def feed_counted_in_a_text_that_is_cut_later_wrong(connection: sqlite3.Connection) -> None:
    rows = connection.execute(FEED).fetchall()
    text = f"hello {len(rows)}"[:7] + str(random.random())
    connection.execute(POST, (text, time.time()))


def feed_shown_with_apsw(file: str) -> None:
    with closing(apsw.Connection(file)) as connection:
        _show(json.dumps(list(connection.execute(FEED))))
        connection.execute(POST, ("hello", time.time()))


def page_shown_with_its_number_of_rows(connection: sqlite3.Connection) -> None:
    ((total,),) = connection.execute("SELECT count(*) FROM message")
    rows = connection.execute(FEED).fetchmany(5)
    _show(f"{len(rows)} of {total}" if rows else "be the first")
    if len(rows) < total:
        _show("more")
    connection.execute(POST, ("hello", time.time()))


def newer_ones_shown_twice(file: str) -> None:
    last = 0
    with opened(file) as connection:
        for _ in range(2):
            newer = "SELECT id, body FROM message WHERE id > ? ORDER BY id"
            rows = connection.execute(newer, (last,)).fetchall()
            if rows:
                last = rows[-1]["id"]
            connection.execute(POST, ("hello", time.time()))


class _Wall:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.rows: list[sqlite3.Row] = []

    def get(self) -> list[sqlite3.Row]:
        self.rows = self.connection.execute(FEED).fetchall()
        return self.rows

    def post(self, body: str) -> None:
        self.connection.execute(POST, (body, time.time()))

    def answer(self) -> None:
        self.post(self.rows[0]["body"] + "!" if self.rows else "first")


def wall_shown(connection: sqlite3.Connection) -> None:
    wall = _Wall(connection)
    wall.get()
    wall.post("hello")


def averages_shown(connection: sqlite3.Connection) -> None:
    ((average,),) = connection.execute("SELECT avg(total) FROM invoice")
    _show(f"{average}")
    connection.execute("INSERT INTO invoice (number, total) VALUES (7, ?)", (random.randrange(99),))


class Base(DeclarativeBase):
    pass


class Message(Base):
    __tablename__ = "message"
    id: Mapped[int] = mapped_column(primary_key=True)
    author: Mapped[str]
    body: Mapped[str]
    created: Mapped[float]


class Member(Base):
    __tablename__ = "member"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str]
    credits: Mapped[int]


@contextmanager
def session_of(file: str) -> Iterator[Session]:
    engine = create_engine(f"sqlite:///{file}")
    with Session(engine) as session:
        yield session
    engine.dispose()


def mapped_feed_shown(file: str) -> None:
    with session_of(file) as session:
        total = session.scalar(select(func.count()).select_from(Message))
        shown = session.scalars(select(Message).order_by(Message.id.desc()).limit(5)).all()
        _show(f"{len(shown)} of {total}")
        session.add(Message(author="anna", body="hello", created=time.time()))
        session.commit()


def mapped_feed_shown_in_a_block(file: str) -> None:
    with session_of(file) as session, session.begin():
        messages = session.scalars(select(Message).order_by(Message.id.desc()).limit(5)).all()
        lines = [message.body for message in messages]
        _show("\n".join(lines))
        session.add(Message(author="anna", body="hello", created=time.time()))


class Model(peewee.Model):
    id = peewee.AutoField()
    email = peewee.TextField()
    credits = peewee.IntegerField()

    class Meta:
        table_name = "member"


@contextmanager
def members(file: str) -> Iterator[None]:
    database = peewee.SqliteDatabase(file)
    with database.bind_ctx([Model]), database.connection_context():
        yield


def peewee_page_shown(file: str) -> None:
    with members(file):
        query = Model.select().order_by(Model.id.desc())
        _show(f"{query.count()} {[member.email for member in query.paginate(1, 10)]}")
        Model.create(email=f"{random.random()}@x", credits=0)


# Values that do not follow from what was read, and rows that a unique key refuses.


def session_touched(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT * FROM session WHERE token = 'token'").fetchone()
    if row is None:
        return
    seen = "UPDATE session SET seen = ? WHERE token = ?"
    connection.execute(seen, (time.time() + 60, row["token"]))


def seen_after_a_check_of_another_column(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT * FROM member WHERE email = 'a@x'").fetchone()
    if row["plan"] == "banned":
        raise PermissionError
    seen = "UPDATE member SET seen = ? WHERE id = ?"
    connection.execute(seen, (time.time() + 60, row["id"]))


def plan_overwritten(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT plan FROM member WHERE id = 1").fetchone()
    _show(f"was {row['plan']}")
    connection.execute("UPDATE member SET plan = 'pro' WHERE id = 1")


def mapped_email_overwritten(file: str) -> None:
    with session_of(file) as session:
        member = session.get_one(Member, 1)
        member.email = f"{random.random()}@x"
        session.commit()


def cache_filled(connection: sqlite3.Connection) -> None:
    key = f"key {random.randrange(3)}"
    if connection.execute("SELECT value FROM cache WHERE key = ?", (key,)).fetchone() is None:
        value = hashlib.sha256(key.encode()).hexdigest()
        connection.execute("INSERT OR IGNORE INTO cache VALUES (?, ?)", (key, value))


def vote_changed(connection: sqlite3.Connection) -> None:
    counts = "SELECT choice, count(*) FROM vote WHERE poll = 1 GROUP BY choice"
    _show(json.dumps([[*row] for row in connection.execute(counts)]))
    upsert = "INSERT INTO vote VALUES (1, ?, 'a') ON CONFLICT DO UPDATE SET choice = excluded.choice"
    connection.execute(upsert, (f"voter {random.randrange(3)}",))


# The rows decide whether a row is added, or what it contains.


def quota_by_length_wrong(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT id FROM message WHERE author = 'anna'").fetchall()
    if len(rows) < 1000:
        connection.execute(POST, ("hello", time.time()))


def quota_by_a_function_that_raises_wrong(file: str) -> None:
    def check(connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT count(*) FROM message").fetchone()[0] >= 1000:
            raise ValueError

    with opened(file) as connection:
        check(connection)
        connection.execute(POST, ("hello", time.time()))


class _Course:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @property
    def full(self) -> bool:
        ((number,),) = self.connection.execute("SELECT count(*) FROM message")
        return bool(number >= 1000)

    def enrol(self) -> None:
        if not self.full:
            self.connection.execute(POST, ("enrolled", time.time()))


def quota_in_a_property_wrong(connection: sqlite3.Connection) -> None:
    _Course(connection).enrol()


def registered_unless_raised_wrong(file: str) -> None:
    with members(file):
        email = f"{random.random()}@x"
        try:
            Model.get(Model.email == email)
        except peewee.DoesNotExist:
            Model.create(email=email, credits=0)


def mapped_member_registered_wrong(file: str) -> None:
    email = f"{random.random()}@x"
    with session_of(file) as session:
        if session.scalar(select(Member).where(Member.email == email)) is None:
            session.add(Member(email=email, credits=0))
        session.commit()


def registered_if_not_in_the_set_wrong(connection: sqlite3.Connection) -> None:
    emails = {email for (email,) in connection.execute("SELECT email FROM member")}
    email = f"{random.random()}@x"
    if email not in emails:
        connection.execute("INSERT INTO member (email) VALUES (?)", (email,))


def lowest_free_number_wrong(connection: sqlite3.Connection) -> None:
    taken = {number for (number,) in connection.execute("SELECT number FROM invoice")}
    free = next(number for number in range(10_000) if number not in taken)
    connection.execute("INSERT INTO invoice (number) VALUES (?)", (free,))


def chain_of_digests_wrong(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT body FROM message ORDER BY id DESC LIMIT 1").fetchone()
    digest = hashlib.sha256(row["body"].encode() if row else secrets.token_bytes()).hexdigest()
    connection.execute(POST, (digest, time.time()))


def wall_answered_wrong(connection: sqlite3.Connection) -> None:
    wall = _Wall(connection)
    wall.get()
    wall.answer()


def _run(connection: sqlite3.Connection, sql: str, *parameters: object) -> None:
    connection.execute(sql, parameters)


def number_through_a_helper_wrong(connection: sqlite3.Connection) -> None:
    ((last,),) = connection.execute("SELECT max(number) FROM invoice")
    number = 1
    if last is not None:
        number = last + 1
    _run(connection, "INSERT INTO invoice (number) VALUES (?)", number)


class _Numbers:
    last = 0


def _load(connection: sqlite3.Connection, numbers: _Numbers) -> None:
    row = connection.execute("SELECT number FROM invoice ORDER BY number DESC LIMIT 1").fetchone()
    numbers.last = row["number"] if row else 0


def number_stored_by_a_helper_wrong(connection: sqlite3.Connection) -> None:
    numbers = _Numbers()
    _load(connection, numbers)
    number = numbers.last + 1
    connection.execute("INSERT INTO invoice (number) VALUES (?)", (number,))


def plan_by_match_wrong(connection: sqlite3.Connection) -> None:
    match connection.execute("SELECT plan FROM member WHERE id = 1").fetchone()["plan"]:
        case "free":
            plan = "pro"
        case _:
            plan = "free"
    connection.execute("UPDATE member SET plan = ? WHERE id = 1", (plan,))


def data_merged_wrong(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT token, data FROM session WHERE token = 'token'").fetchone()
    data = json.loads(row["data"])
    data["n"] = data.get("n", 0) + 1
    merged = "UPDATE session SET data = ? WHERE token = ?"
    connection.execute(merged, (json.dumps(data), row["token"]))


def _spend(member: Any) -> None:
    member.credits -= 1


def mapped_credits_spent_by_a_helper_wrong(file: str) -> None:
    with session_of(file) as session:
        member = session.get_one(Member, 1)
        _spend(member)
        session.commit()


def whole_row_written_back_wrong(connection: sqlite3.Connection) -> None:
    row = dict(connection.execute("SELECT * FROM member WHERE id = 1").fetchone())
    row["credits"] -= 1
    columns = "UPDATE member SET email = :email, plan = :plan, credits = :credits WHERE id = :id"
    connection.execute(columns, row)


PROGRAMS = programs_of(globals(), opened)
