"""py-purr 0.1.0: `incr` counts every hit.

sqlstress app examples/tried/counter_purr.py -c 4
"""

from purr.store import Store

from sqlstress import check, connect, counter, note, setup, transaction


@setup
def zero(database):
    Store(database).set("hits", 0)


@connect
def store(database):
    return Store(database)


@transaction
def hit(store):
    store.incr("hits")
    note("hit")


@check
def no_hit_is_lost(notes, database):
    counter(Store(database).get("hits"), notes.of("hit"))
