"""lockmyresource 0.4.0: one user has locked a resource.

sqlstress app examples/tried/lock_lockmyresource.py -c 4
"""

import datetime
import os
import sqlite3
from pathlib import Path

from lockmyresource.core import Database, Resource, User

from sqlstress import check, connect, counter, note, setup, transaction

ME, PAGE = User(str(os.getpid())), Resource("page")


@setup
def tables(database):
    Database.open(Path(database))
    page = sqlite3.connect(database)
    page.execute("CREATE TABLE page (n INTEGER)")
    page.execute("INSERT INTO page VALUES (0)")
    page.commit()


@connect
def both(database):
    return Database.open(Path(database)), sqlite3.connect(database, timeout=30, isolation_level=None)


@transaction
def hit(both):
    locks, page = both
    if not locks.lock(PAGE, ME, datetime.datetime.now(), ""):
        return
    ((n,),) = page.execute("SELECT n FROM page").fetchall()
    page.execute("UPDATE page SET n = ?", (n + 1,))
    locks.release(PAGE, ME)
    note("hit")


@check
def a_lock_excludes(query, notes, database):
    ((n,),) = query("SELECT n FROM page")
    counter(n, notes.of("hit"))
