"""The cache with a race: a price that changes between SELECT and INSERT stays stale in the cache."""

from __future__ import annotations

import random
import sqlite3
import time

from price_cache import FILL, ITEMS, change, create, nothing_cached_is_stale, open_it

from sqlstress import transaction

__all__ = ["change", "create", "nothing_cached_is_stale", "open_it"]


@transaction
def show(connection: sqlite3.Connection) -> None:
    item = random.randrange(ITEMS)
    if connection.execute("SELECT text FROM cache WHERE id = ?", (item,)).fetchone():
        return
    (cents,) = connection.execute("SELECT cents FROM price WHERE id = ?", (item,)).fetchone()
    time.sleep(0.001)  # rendering it takes a while
    connection.execute(FILL, (item, f"{cents} cents"))
