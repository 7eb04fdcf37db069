"""Kvsqlite 0.3.0: a value that is got, and set again.

sqlstress app examples/tried/dict_kvsqlite.py -c 4
"""

from kvsqlite.sync import Client

from sqlstress import check, connect, counter, note, setup, transaction


@setup
def zero(database):
    with Client(database) as db:
        db.set("hits", 0)


@connect
def client(database):
    return Client(database)


@transaction
def hit(db):
    db.set("hits", db.get("hits") + 1)
    note("hit")


@check
def no_hit_is_lost(notes, database):
    with Client(database) as db:
        counter(db.get("hits"), notes.of("hit"))
