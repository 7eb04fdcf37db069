"""eventsourcing 9.5.6: an aggregate's versions are recorded once; the second writer gets an error.

sqlstress app examples/tried/events_eventsourcing.py -c 4
"""

import os
from uuid import NAMESPACE_URL, uuid5

os.environ["PERSISTENCE_MODULE"] = "eventsourcing.sqlite"
os.environ["SQLITE_DBNAME"] = os.environ["SQLSTRESS_DATABASE"]

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import IntegrityError

from sqlstress import check, connect, counter, note, setup, transaction


class Page(Aggregate):
    @staticmethod
    def create_id():
        return uuid5(NAMESPACE_URL, "page")

    def __init__(self):
        self.hits = 0

    @event("Hit")
    def hit(self):
        self.hits += 1


@setup
def create():
    app = Application()
    app.save(Page())
    app.close()


@connect
def application():
    return Application()


@transaction
def hit(app):
    while True:
        page = app.repository.get(Page.create_id())
        page.hit()
        try:
            app.save(page)
        except IntegrityError:
            continue
        return note("hit")


@check
def no_hit_is_lost(notes, database):
    app = Application()
    counter(app.repository.get(Page.create_id()).hits, notes.of("hit"))
