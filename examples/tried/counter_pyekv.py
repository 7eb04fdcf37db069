"""pyekv 0.1.3: `incr` counts every hit.

sqlstress app examples/tried/counter_pyekv.py -c 4
"""

from pyekv import EKV

from sqlstress import check, connect, counter, note, setup, transaction


@setup
def zero(database):
    EKV(database).set("hits", "0")


@connect
def store(database):
    return EKV(database)


@transaction
def hit(store):
    store.incr("hits")
    note("hit")


@check
def no_hit_is_lost(notes, database):
    counter(int(EKV(database).get("hits")), notes.of("hit"))
