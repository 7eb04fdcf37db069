"""The rate limiter with a race: several processes read the same number, and each lets a request through."""

from __future__ import annotations

import sqlite3
import time

from rate_limit import LIMIT, create, no_client_gets_more, open_it

from sqlstress import note, transaction

__all__ = ["create", "no_client_gets_more", "open_it"]


@transaction
def request(connection: sqlite3.Connection) -> None:
    now = ("anna", int(time.time()))
    found = connection.execute("SELECT number FROM used WHERE client = ? AND second = ?", now).fetchone()
    number = found[0] if found else 0
    if number < LIMIT:
        connection.execute("REPLACE INTO used VALUES (?, ?, ?)", (*now, number + 1))
        note("let through", now)
