"""sqlitekvstore 0.4.0: `kv["hits"] += 1`.

sqlstress app examples/tried/dict_sqlitekvstore.py -c 4
"""

from sqlitekvstore import SQLiteKVStore

from sqlstress import check, connect, counter, note, setup, transaction


@setup
def zero(database):
    with SQLiteKVStore(database, wal=True) as kv:
        kv["hits"] = 0


@connect
def store(database):
    return SQLiteKVStore(database, wal=True)


@transaction
def hit(kv):
    kv["hits"] += 1
    note("hit")


@check
def no_hit_is_lost(notes, database):
    counter(SQLiteKVStore(database)["hits"], notes.of("hit"))
