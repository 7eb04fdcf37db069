"""monlite 0.2.0: one process holds a lock; `incr` counts every hit.

sqlstress app examples/tried/lock_monlite.py -c 4
"""

import monlite

from sqlstress import check, connect, counter, note, setup, transaction


@setup
def tables(database):
    store(database)


@connect
def store(database):
    db = monlite.create_db(database)
    db.sqlite.execute("PRAGMA busy_timeout=30000")
    return monlite.kv(db)


@transaction
def hit(kv):
    kv.incr("hits")
    note("hit")


@transaction
def locked(kv):
    token = kv.lock("page")
    if token is None:
        return
    kv.set("n", (kv.get("n") or 0) + 1)
    kv.unlock("page", token)
    note("locked")


@check
def no_hit_is_lost(notes, database):
    counter(store(database).get("hits") or 0, notes.of("hit"))


@check
def a_lock_excludes(notes, database):
    counter(store(database).get("n") or 0, notes.of("locked"))
