"""Programs whose checks do not protect them, and programs like them whose checks do. Each function makes the
statements of one call; names of functions with a fault end with `wrong`.
"""

from __future__ import annotations

import itertools
import random
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import peewee

from tests.races.programs import programs_of

SCHEMA = """
CREATE TABLE mail (id INTEGER PRIMARY KEY, state TEXT NOT NULL, worker INTEGER);
CREATE TABLE page (id INTEGER PRIMARY KEY, body TEXT, modified TEXT, version INTEGER);
CREATE TABLE bill (id INTEGER PRIMARY KEY, lines INTEGER);
CREATE TABLE line (id INTEGER PRIMARY KEY, bill INTEGER);
CREATE TABLE inbox (id INTEGER PRIMARY KEY, body TEXT);
CREATE TABLE numbered_inbox (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT);
CREATE TABLE handled (message INTEGER PRIMARY KEY);
CREATE TABLE player (id INTEGER PRIMARY KEY, name TEXT, wins INTEGER, rating INTEGER);
CREATE TABLE reading (id INTEGER PRIMARY KEY, sensor INTEGER, value REAL);
CREATE TABLE customer (id INTEGER PRIMARY KEY, mail TEXT UNIQUE);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER);
CREATE TABLE cache (key TEXT PRIMARY KEY, value TEXT, hits INTEGER DEFAULT 0);
CREATE TABLE stock (id INTEGER PRIMARY KEY, article TEXT, size TEXT, n INTEGER, UNIQUE (article, size));
CREATE TABLE stat (sensor INTEGER PRIMARY KEY, n INTEGER);
CREATE TABLE device (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE event (id INTEGER PRIMARY KEY, body TEXT);
CREATE TABLE numbered_event (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT);
CREATE TABLE reader (name TEXT PRIMARY KEY, position INTEGER);
CREATE TABLE telemetry (device INTEGER REFERENCES device ON DELETE CASCADE, value REAL);
CREATE TABLE clip (id INTEGER PRIMARY KEY, until REAL, fence INTEGER);
CREATE TABLE crate (place INTEGER PRIMARY KEY, n INTEGER);
CREATE TRIGGER crate_gone BEFORE DELETE ON crate BEGIN UPDATE bill SET lines = lines - old.n; END;
INSERT INTO mail SELECT value, 'queued', NULL FROM json_each('[1, 2, 3, 4, 5, 6]');
INSERT INTO page VALUES (1, '', datetime('now'), 1);
INSERT INTO clip VALUES (1, 0, 0);
INSERT INTO reader VALUES ('mail', 0);
INSERT INTO player VALUES (1, 'anna', 0, 1500);
"""


@contextmanager
def opened(file: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


# Row counts.

QUEUED = "SELECT id FROM mail WHERE state = 'queued' ORDER BY id LIMIT 1"
CLAIM = "UPDATE mail SET state = 'sending', worker = 7 WHERE id = ? AND state = 'queued'"
SENT = "UPDATE mail SET state = 'sent' WHERE id = ?"


def claim_without_row_count_wrong(connection: sqlite3.Connection) -> None:
    row = connection.execute(QUEUED).fetchone()
    connection.execute(CLAIM, row)
    connection.execute(SENT, row)


def claim_with_row_count(connection: sqlite3.Connection) -> None:
    row = connection.execute(QUEUED).fetchone()
    if connection.execute(CLAIM, row).rowcount == 1:
        connection.execute(SENT, row)


def claim_that_is_read_again(connection: sqlite3.Connection) -> None:
    row = connection.execute(QUEUED).fetchone()
    connection.execute(CLAIM, row)
    if connection.execute("SELECT 1 FROM mail WHERE id = ? AND worker = 7", row).fetchone():
        connection.execute(SENT, row)


def claim_in_a_transaction(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    row = connection.execute(QUEUED).fetchone()
    connection.execute(CLAIM, row)
    connection.execute("COMMIT")
    connection.execute(SENT, row)


def mark_as_sent(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT id FROM mail WHERE state = 'sent' LIMIT 1").fetchone()
    connection.execute("UPDATE mail SET state = 'archived' WHERE id = ? AND state = 'sent'", row or (0,))


# Times and versions.


def edit_by_time_wrong(connection: sqlite3.Connection) -> None:
    body, modified = connection.execute("SELECT body, modified FROM page WHERE id = 1").fetchone()
    change = "UPDATE page SET body = ?, modified = datetime('now') WHERE id = 1 AND modified = ?"
    assert connection.execute(change, (f"{body}+", modified)).rowcount == 1


def edit_by_version(connection: sqlite3.Connection) -> None:
    body, version = connection.execute("SELECT body, version FROM page WHERE id = 1").fetchone()
    change = "UPDATE page SET body = ?, version = version + 1 WHERE id = 1 AND version = ?"
    assert connection.execute(change, (f"{body}+", version)).rowcount == 1


def edit_by_version_with_time(connection: sqlite3.Connection) -> None:
    body, version = connection.execute("SELECT body, version FROM page WHERE id = 1").fetchone()
    change = "UPDATE page SET body = ?, version = ?, modified = datetime('now') WHERE id = 1 AND version = ?"
    assert connection.execute(change, (f"{body}+", version + 1, version)).rowcount == 1


def edit_by_version_and_time(connection: sqlite3.Connection) -> None:
    body, version, modified = connection.execute("SELECT body, version, modified FROM page").fetchone()
    change = (
        "UPDATE page SET body = ?, version = ?, modified = datetime('now') WHERE version = ? AND modified = ?"
    )
    assert connection.execute(change, (f"{body}+", version + 1, version, modified)).rowcount == 1


# The last row.


def bill_of_the_last_row_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO bill (lines) VALUES (2)")
    ((bill,),) = connection.execute("SELECT max(id) FROM bill")
    connection.execute("INSERT INTO line (bill) VALUES (?)", (bill,))


def bill_of_the_newest_row_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO bill (lines) VALUES (2)")
    ((bill,),) = connection.execute("SELECT id FROM bill ORDER BY id DESC LIMIT 1")
    connection.execute("INSERT INTO line (bill) VALUES (?)", (bill,))


def bill_of_the_cursor(connection: sqlite3.Connection) -> None:
    bill = connection.execute("INSERT INTO bill (lines) VALUES (2)").lastrowid
    connection.execute("INSERT INTO line (bill) VALUES (?)", (bill,))


def bill_of_the_last_row_in_a_transaction(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO bill (lines) VALUES (2)")
    ((bill,),) = connection.execute("SELECT max(id) FROM bill")
    connection.execute("INSERT INTO line (bill) VALUES (?)", (bill,))
    connection.execute("COMMIT")


def last_bill_shown(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO bill (lines) VALUES (2)")
    ((bill,),) = connection.execute("SELECT max(id) FROM bill")
    str(bill)
    connection.execute("INSERT INTO line (bill) VALUES (1)")


# Ids of deleted rows.


def _handle(connection: sqlite3.Connection, table: str) -> None:
    connection.execute(f"INSERT INTO {table} (body) VALUES ('hello')")
    connection.execute("BEGIN IMMEDIATE")
    row = connection.execute(f"SELECT id FROM {table} ORDER BY id LIMIT 1").fetchone()
    connection.execute("INSERT OR IGNORE INTO handled VALUES (?)", row)
    connection.execute(f"DELETE FROM {table} WHERE id = ?", row)
    connection.execute("COMMIT")


def handled_once_wrong(connection: sqlite3.Connection) -> None:
    _handle(connection, "inbox")


def handled_once_by_a_unique_id(connection: sqlite3.Connection) -> None:
    _handle(connection, "numbered_inbox")


# Values that do not follow from the row, and threads.


class Player(peewee.Model):
    name = peewee.TextField()
    wins = peewee.IntegerField()
    rating = peewee.IntegerField()


@contextmanager
def _players(file: str) -> Iterator[None]:
    database = peewee.SqliteDatabase(file)
    with database.bind_ctx([Player]), database.connection_context():
        yield


def player_renamed(file: str) -> None:
    with _players(file):
        player = Player.get_by_id(1)
        player.name = f"player {random.randrange(1000)}"
        player.save(only=[Player.name])


def player_renamed_if_found(file: str) -> None:
    with _players(file):
        player = Player.select().where(Player.wins == 0).first()
        if player:
            player.name = f"player {random.randrange(1000)}"
            player.save(only=[Player.name])


def player_renamed_by_saving_all_wrong(file: str) -> None:
    with _players(file):
        player = Player.get_by_id(1)
        player.name = f"player {random.randrange(1000)}"
        player.wins = player.wins + 1
        player.save()


def player_rated_wrong(file: str) -> None:
    with _players(file):
        player = Player.get_by_id(1)
        player.rating += 16
        player.save(only=[Player.rating])


def _store(file: str) -> int:
    with opened(file) as connection:
        connection.execute("INSERT INTO reading (sensor, value) VALUES (1, random())")
    return 1


def _refresh(file: str) -> int:
    with opened(file) as connection:
        (n,) = connection.execute("SELECT count(*) FROM reading WHERE sensor = 1").fetchone()
        connection.execute("INSERT OR REPLACE INTO stat VALUES (1, ?)", (n,))
    return 0


def statistics_by_another_thread(file: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert pool.submit(_refresh, file).result() == 0
        assert pool.submit(_store, file).result() == 1


def _count(file: str) -> int:
    with opened(file) as connection:
        (n,) = connection.execute("SELECT count(*) FROM bill").fetchone()
    return int(n)


def _add(file: str, n: int) -> None:
    with opened(file) as connection:
        connection.execute("INSERT INTO bill (lines) VALUES (?)", (n + 1,))


def number_by_another_thread_wrong(file: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        n = pool.submit(_count, file).result()
        pool.submit(_add, file, n).result()


ADD_CUSTOMER = "INSERT OR IGNORE INTO customer (mail) VALUES ('a@example.org')"
PURCHASE = "INSERT INTO purchase (customer) VALUES (?)"


def customer_by_last_id_wrong(connection: sqlite3.Connection) -> None:
    customer = connection.execute(ADD_CUSTOMER).lastrowid
    connection.execute(PURCHASE, (customer,))


def customer_by_last_id_of_a_helper_wrong(connection: sqlite3.Connection) -> None:
    connection.execute(PURCHASE, (_customer_id(connection),))


def _customer_id(connection: sqlite3.Connection) -> int | None:
    return connection.execute(ADD_CUSTOMER).lastrowid


def id_of_another_cursor(connection: sqlite3.Connection) -> None:
    connection.execute(ADD_CUSTOMER)
    bill = connection.execute("INSERT INTO bill (lines) VALUES (2)").lastrowid
    connection.execute("UPDATE bill SET lines = lines + 1 WHERE id = ?", (bill,))


def customer_by_last_id_if_added(connection: sqlite3.Connection) -> None:
    cursor = connection.execute(ADD_CUSTOMER)
    if cursor.rowcount == 1:
        connection.execute(PURCHASE, (cursor.lastrowid,))


def customer_by_query(connection: sqlite3.Connection) -> None:
    connection.execute(ADD_CUSTOMER)
    customer = connection.execute("SELECT id FROM customer WHERE mail = 'a@example.org'").fetchone()
    purchase = connection.execute(PURCHASE, customer).lastrowid
    connection.execute("UPDATE purchase SET customer = customer + 0 WHERE id = ?", (purchase,))


EDIT = "UPDATE page SET body = 'new', version = version + 1 WHERE id = ? AND version = ?"


def edit_by_version_wrong(connection: sqlite3.Connection) -> None:
    page = connection.execute("SELECT id, version FROM page WHERE id = 1").fetchone()
    connection.execute(EDIT, page)


def edit_by_version_until_it_counts(connection: sqlite3.Connection) -> None:
    while True:
        page = connection.execute("SELECT id, version FROM page WHERE id = 1").fetchone()
        if connection.execute(EDIT, page).rowcount == 1:
            return


HIT = "UPDATE cache SET hits = hits + 1 WHERE key = 'a'"


def cache_replaced_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT OR REPLACE INTO cache (key, value) VALUES ('a', 'new')")
    connection.execute(HIT)


def cache_replaced_with_all_columns(connection: sqlite3.Connection) -> None:
    connection.execute("REPLACE INTO cache (key, value, hits) VALUES ('a', 'new', 0)")
    connection.execute(HIT)


def cache_updated(connection: sqlite3.Connection) -> None:
    sql = "INSERT INTO cache (key, value) VALUES ('a', 'n') ON CONFLICT (key) DO UPDATE SET value = 'n'"
    connection.execute(sql)
    connection.execute(HIT)


# Rows that refer to a replaced row.


def device_replaced_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("INSERT OR REPLACE INTO device VALUES (1, 'a')")


def device_replaced_without_foreign_keys(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT OR REPLACE INTO device VALUES (1, 'a')")


def device_updated(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("INSERT INTO device VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET name = 'a'")


# Rows that come between a query and a write of all rows.


def inbox_emptied_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO inbox (body) VALUES ('new')")
    for row in connection.execute("SELECT id, body FROM inbox").fetchall():
        str(row)
    connection.execute("DELETE FROM inbox")


def queued_mail_marked_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO mail (state) VALUES ('queued')")
    for row in connection.execute("SELECT id FROM mail WHERE state = 'queued'").fetchall():
        str(row)
    connection.execute("UPDATE mail SET state = 'sent' WHERE state = 'queued'")


def readings_summed_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO reading (sensor, value) VALUES (1, 2)")
    (total,) = connection.execute("SELECT sum(value) FROM reading WHERE sensor = 1").fetchone()
    connection.execute("BEGIN")
    connection.execute("DELETE FROM reading WHERE sensor = 1")
    connection.execute("INSERT INTO handled VALUES (abs(random()) + ?)", (total,))
    connection.execute("COMMIT")


def mail_archived_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO mail (state) VALUES ('sent')")
    connection.execute(
        "INSERT INTO stat SELECT abs(random()), count(*) FROM mail WHERE state = 'sent' GROUP BY state"
    )
    connection.execute("DELETE FROM mail WHERE state = 'sent'")


def mail_archived_in_a_transaction(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO mail (state) VALUES ('sent')")
    connection.execute(
        "INSERT INTO stat SELECT abs(random()), count(*) FROM mail WHERE state = 'sent' GROUP BY state"
    )
    connection.execute("DELETE FROM mail WHERE state = 'sent'")
    connection.execute("COMMIT")


def inbox_emptied_up_to_the_last_row(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO inbox (body) VALUES ('new')")
    last = 0
    for row in connection.execute("SELECT id, body FROM inbox").fetchall():
        last = max(last, row[0])
    connection.execute("DELETE FROM inbox WHERE id <= ?", (last,))


def inbox_emptied_in_a_transaction(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO inbox (body) VALUES ('new')")
    for row in connection.execute("SELECT id, body FROM inbox").fetchall():
        str(row)
    connection.execute("DELETE FROM inbox")
    connection.execute("COMMIT")


def inbox_emptied_by_returning(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO inbox (body) VALUES ('new')")
    for row in connection.execute("DELETE FROM inbox RETURNING id, body").fetchall():
        str(row)


def long_inbox_cleared(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO inbox (body) VALUES ('new')")
    if connection.execute("SELECT count(*) FROM inbox").fetchone()[0] > 0:
        connection.execute("DELETE FROM inbox")


# Numbers that the program keeps in a variable.

_wins = itertools.count(1)
_SET_WINS = "UPDATE player SET wins = ? WHERE id = 1"


def wins_from_memory_wrong(connection: sqlite3.Connection) -> None:
    connection.execute(_SET_WINS, (next(_wins),))


def wins_by_sql(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE player SET wins = wins + 1 WHERE id = 1")


def wins_as_rows_of_another_table(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO event (body) VALUES ('win')")
    connection.execute("UPDATE player SET wins = (SELECT 100 + count(*) FROM event) WHERE id = 1")


def wins_at_random(connection: sqlite3.Connection) -> None:
    connection.execute(_SET_WINS, (random.choice((9, 1, 5)),))


def wins_by_the_clock(connection: sqlite3.Connection) -> None:
    connection.execute(_SET_WINS, (time.time_ns() // 1000,))


# Readers that follow ids: SQLite gives the id of a deleted last row again, unless AUTOINCREMENT is declared.


def _read_next(connection: sqlite3.Connection, table: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"INSERT INTO {table} (body) VALUES ('news')")
    ((position,),) = connection.execute("SELECT position FROM reader WHERE name = 'mail'")
    rows = connection.execute(f"SELECT id FROM {table} WHERE id > ? ORDER BY id", (position,)).fetchall()
    if rows:
        connection.execute("UPDATE reader SET position = ? WHERE name = 'mail'", rows[-1])
    connection.execute("COMMIT")


def followed_ids_wrong(connection: sqlite3.Connection) -> None:
    _read_next(connection, "event")
    connection.execute("DELETE FROM event WHERE id <= (SELECT position FROM reader)")


def followed_ids_with_autoincrement(connection: sqlite3.Connection) -> None:
    _read_next(connection, "numbered_event")
    connection.execute("DELETE FROM numbered_event WHERE id <= (SELECT position FROM reader)")


def followed_ids_without_deletion(connection: sqlite3.Connection) -> None:
    _read_next(connection, "event")


# Pages by OFFSET. Each query counts the rows from the start of the order.


def _read_pages(connection: sqlite3.Connection, order: str, table: str = "event") -> None:
    connection.execute(f"INSERT INTO {table} (body) VALUES ('news')")
    for offset in (0, 2, 4):
        sql = f"SELECT id FROM {table} ORDER BY {order} LIMIT 2 OFFSET ?"
        connection.execute(sql, (offset,)).fetchall()


def newest_first_in_pages_wrong(connection: sqlite3.Connection) -> None:
    _read_pages(connection, "id DESC")


def pages_by_text_wrong(connection: sqlite3.Connection) -> None:
    _read_pages(connection, "body")


def pages_of_a_queue_wrong(connection: sqlite3.Connection) -> None:
    _read_pages(connection, "id")
    connection.execute("DELETE FROM event WHERE id = 1")


def oldest_first_in_pages(connection: sqlite3.Connection) -> None:
    _read_pages(connection, "id")


def pages_in_a_transaction(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    _read_pages(connection, "id DESC")
    connection.execute("COMMIT")


def pages_after_the_last_key(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO event (body) VALUES ('news')")
    for last in (9, 7, 5):
        sql = "SELECT id FROM event WHERE id < ? ORDER BY id DESC LIMIT 2"
        connection.execute(sql, (last,)).fetchall()


# Keys with NULL, which conflict with no row.


def _receive(connection: sqlite3.Connection, *key: object, then: str) -> None:
    sql = f"INSERT INTO stock (article, size, n) VALUES (?, ?, 1) ON CONFLICT (article, size) DO {then}"
    connection.execute(sql, key)


def upsert_of_a_null_key_wrong(connection: sqlite3.Connection) -> None:
    _receive(connection, "scarf", None, then="UPDATE SET n = n + excluded.n")


def insert_of_a_null_key_or_nothing_wrong(connection: sqlite3.Connection) -> None:
    _receive(connection, "scarf", None, then="NOTHING")


def upsert_of_a_whole_key(connection: sqlite3.Connection) -> None:
    _receive(connection, "scarf", "", then="UPDATE SET n = n + excluded.n")


# DELETE triggers, which INSERT OR REPLACE runs only with recursive_triggers.


def replace_without_the_delete_trigger_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("REPLACE INTO crate VALUES (1, 5)")


def replace_with_the_delete_trigger(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute("REPLACE INTO crate VALUES (1, 5)")


def upsert_beside_a_delete_trigger(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO crate VALUES (1, 5) ON CONFLICT (place) DO UPDATE SET n = excluded.n")


# A table that each call empties, fills and copies.


def _load(connection: sqlite3.Connection, between: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM inbox")
    connection.execute("INSERT INTO inbox (body) VALUES ('new'), ('newer')")
    for sql in between.split(";"):
        connection.execute(sql)
    connection.execute("INSERT INTO event (body) SELECT body FROM inbox WHERE body > ''")
    connection.execute("COMMIT")


def staging_in_two_transactions_wrong(connection: sqlite3.Connection) -> None:
    _load(connection, "COMMIT; BEGIN IMMEDIATE")


def staging_in_one_transaction(connection: sqlite3.Connection) -> None:
    _load(connection, "SELECT 1")


def copy_of_rows_that_stay(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO inbox (body) VALUES ('new')")
    connection.execute("INSERT INTO event (body) SELECT body FROM inbox WHERE body > ''")


# Times as texts.

STALE = "SELECT id FROM event WHERE id + 30 < {}"


def sum_compared_with_a_text_wrong(connection: sqlite3.Connection) -> None:
    connection.execute(STALE.format("strftime('%s', 'now')"))


def text_compared_with_a_number_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT id FROM event WHERE strftime('%s', 'now') > ?", (30,))


def sum_compared_with_a_number(connection: sqlite3.Connection) -> None:
    connection.execute(STALE.format("CAST(strftime('%s', 'now') AS INTEGER)"))
    connection.execute(STALE.format("0 + strftime('%s', 'now')"))


def column_compared_with_a_text(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT id FROM event WHERE id < strftime('%s', 'now')")


def texts_with_and_without_t_wrong(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE page SET modified = datetime('now') WHERE id = 1 AND modified < ?", ("2026-01-01T10:00:00",)
    )


def texts_of_a_single_format(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE page SET modified = datetime('now') WHERE id = 1 AND modified < ?", ("2026-01-01 10:00:00",)
    )


# Leases: claims of a row for a limited time.

LEASE = (
    "UPDATE clip SET until = 160, fence = fence + 1 "
    "WHERE id = (SELECT id FROM clip WHERE until < 100 LIMIT 1) RETURNING id, fence"
)


def lease_without_a_comparison_wrong(connection: sqlite3.Connection) -> None:
    ((clip, _),) = connection.execute(LEASE).fetchall()
    connection.execute("UPDATE clip SET until = 0 WHERE id = ?", (clip,))


def lease_compared_by_its_counter(connection: sqlite3.Connection) -> None:
    (lease,) = connection.execute(LEASE).fetchall()
    assert connection.execute("UPDATE clip SET until = 0 WHERE id = ? AND fence = ?", lease).rowcount


# Write locks of transactions that only read.


def page_read_with_the_write_lock_wrong(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("SELECT body FROM page WHERE id = 1").fetchone()
    connection.execute("COMMIT")


def page_read(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    connection.execute("SELECT body FROM page WHERE id = 1").fetchone()
    connection.execute("COMMIT")


def page_edited_if_old(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("SELECT version FROM page WHERE id = 1").fetchone()
    if version < 1:
        connection.execute("UPDATE page SET version = 2 WHERE id = 1")
    connection.execute("COMMIT")


PROGRAMS = programs_of(globals(), opened)
