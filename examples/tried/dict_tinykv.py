"""tinykv 0.3.0: a counter, in a transaction of its caller.

sqlstress app examples/tried/dict_tinykv.py -c 4
"""

import sqlite3

import tinykv

from sqlstress import check, connect, counter, note, setup, transaction


@setup
def zero(database):
    conn = sqlite3.connect(database)
    tinykv.create_schema(conn)
    tinykv.TinyKV(conn).set("hits", 0)
    conn.commit()


@connect
def store(database):
    return sqlite3.connect(database, timeout=30, isolation_level=None)


@transaction
def hit(conn):
    with conn:
        conn.execute("BEGIN IMMEDIATE")
        kv = tinykv.TinyKV(conn)
        kv.set("hits", kv.get("hits") + 1)
    note("hit")


@check
def no_hit_is_lost(notes, database):
    counter(tinykv.TinyKV(sqlite3.connect(database)).get("hits"), notes.of("hit"))
