"""The counter with a lost update: Python adds to a number while another process changes it."""

from __future__ import annotations

import sqlite3

from hit_counter import create, every_hit_is_counted, open_it

from sqlstress import note, transaction

__all__ = ["create", "every_hit_is_counted", "open_it"]


@transaction
def count(connection: sqlite3.Connection) -> None:
    (hits,) = connection.execute("SELECT hits FROM page WHERE id = 1").fetchone()
    connection.execute("UPDATE page SET hits = ? WHERE id = 1", (hits + 1,))
    note("hit")
