"""lytecache 0.2.0: `incr` is atomic, and a lock has one holder.

sqlstress app examples/tried/cache_lytecache.py -c 4
"""

from lytecache import LyteCache

from sqlstress import check, connect, counter, note, transaction


@connect
def cache(database):
    return LyteCache(database)


@transaction
def hit(cache):
    cache.incr("hits")
    note("hit")


@transaction
def locked(cache):
    with cache.lock("page"):
        n = cache.get("n", 0)
        cache.set("n", n + 1)
    note("locked")


@check
def no_hit_is_lost(notes, database):
    counter(LyteCache(database).get("hits", 0), notes.of("hit"))


@check
def a_lock_excludes(notes, database):
    counter(LyteCache(database).get("n", 0), notes.of("locked"))
