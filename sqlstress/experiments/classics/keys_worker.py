"""Worker of the experiment keys: inserts the picks of users, in one transaction per user.

A pick is a row with the ids of a user and an item, and in some schemas with its own id, which the worker
makes in the measured time. Users and items are numbered from 0, workers from 1.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress.experiments.classics.steps import Step, StepSource
from sqlstress.statistics.units import NS_PER_MS

if TYPE_CHECKING:
    from sqlstress.experiments.classics.spec import Picks
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.connections import SqliteClient
    from sqlstress.targets.sqlite.drivers import Connection, Row
    from sqlstress.targets.views import Operation

USERS = "SELECT id FROM users ORDER BY rowid"
ITEMS = "SELECT id FROM items ORDER BY rowid"
PICKS = "picks"
"""Kind of all operations: a transaction that inserts a user's rows."""


class KeysSource(StepSource):
    """Source of transactions, each of which inserts a user's rows.

    With the driver `dry`, which has no database, a transaction only makes the rows.
    """

    _users: Sequence[Any]
    _items: Sequence[Any]

    @staticmethod
    def steps_of(case: Case, worker: int, salt: int) -> Iterator[Step]:
        """Yield a worker's transactions. Their rows are pairs (user's number, item's number).

        `params` replaces the numbers by ids.
        """
        for user in users_of(case, worker):
            yield Step(PICKS, [(user, item) for item in picked_by(case, user)])

    def calls(self, client: SqliteClient | None) -> dict[str, Operation]:
        picks: Picks = self.case.spec
        rows = row_maker(picks)
        if client is None:
            self._users, self._items = range(picks.users), range(picks.items)
            return {PICKS: lambda picked: deque(rows(picked), 0)}
        connection = client.connect(0)
        self._users, self._items = ([row[0] for row in connection.rows(sql)] for sql in (USERS, ITEMS))
        return {PICKS: client.retried(insertion(picks, connection, rows), connection.rollback)}

    def params(self, step: Step) -> list[Row]:
        """Return (integer id, id of the user, id of the item) for each row to insert."""
        return [
            (number, self._users[user], self._items[item])
            for number, (user, item) in numbered_picks(self.case.spec, step)
        ]


def row_maker(picks: Picks) -> Callable[[Sequence[Row]], Iterable[Row]]:
    """Return a function that makes rows to insert from tuples (integer id, user's id, item's id)."""
    if not picks.own_id:
        return lambda picked: (row[1:] for row in picked)
    if picks.id_type == "int":
        return iter
    make = MAKERS[picks.id_type]()
    return lambda picked: ((make(), user, item) for _, user, item in picked)


def insertion(
    picks: Picks, connection: Connection, rows: Callable[[Sequence[Row]], Iterable[Row]]
) -> Operation:
    """Return a function that inserts a user's rows in one transaction, for the timed loop.

    Its argument is a list of tuples (integer id, user's id, item's id). `rows` makes the rows from these.
    """
    start, end = connection.writer(f"BEGIN {picks.begin}"), connection.writer("COMMIT")
    insert = insert_statement(picks)

    def insert_all(picked: Sequence[Row]) -> None:
        start(())
        connection.run_many(insert, rows(picked))
        end(())

    return insert_all


def insert_statement(picks: Picks) -> str:
    """Return the SQL that inserts a row for a user and an item."""
    columns, places = ("id, user, item", "?, ?, ?") if picks.own_id else ("user, item", "?, ?")
    return f"INSERT INTO picks ({columns}) VALUES ({places})"


# The picks of a user depend on the seed, and not on the schema or the type of id. So all schemas and types
# get the same picks, and the check of the data can compute them without the workers.


def users_of(case: Case, worker: int) -> range:
    """Return the numbers of the users whose rows a worker inserts."""
    return range(worker - 1, case.spec.users, case.concurrency)


def picked_by(case: Case, user: int) -> list[int]:
    """Return the numbers of the items that a user picks, in order of insertion."""
    picks: Picks = case.spec
    random = Random(f"{case.seed}:picks:{user}")
    count = random.randint(2 * picks.picks - picks.most_picks, picks.most_picks)
    return random.sample(range(picks.items), count)


def numbered_picks(picks: Picks, step: Step) -> Iterable[tuple[int, Row]]:
    """Return the picks of a step with their integer ids, as tuples (id, (user's number, item's number)).

    Each user has a separate range of ids, so that the workers need no common counter.
    """
    user = step.rows[0][0]
    return enumerate(step.rows, user * picks.most_picks + 1)


# Makers of ids with 16 bytes. They use libraries, as an application would. Libraries are imported when they
# are needed, because an import delays the start of a worker.


Make = Callable[[], bytes]
Clock = Callable[[], int]
"""Function that returns the time since 1970, in ns."""
Randomness = Callable[[int], bytes]
"""Function from a number to as many random bytes."""

SIZE = 16
"""Size of an id other than an integer, in bytes."""
ASCENDING = ("int", "uuid7")
"""Types of id in which each id of a worker is greater than all its earlier ids.

A ULID is not: of two ULIDs of one millisecond, the later may be less.
"""


def uuid4_maker() -> Make:
    """Return a function that makes ids with 122 random bits (RFC 9562, 5.4)."""
    from uuid import uuid4

    return lambda: uuid4().bytes


def ulid_maker() -> Make:
    """Return a function that makes ULIDs: the time in milliseconds, then 80 random bits."""
    from ulid import PureRandomPolicy, ULIDGenerator

    generate = ULIDGenerator(policy=PureRandomPolicy()).generate
    return lambda: generate().bytes


def uuid7_maker(clock: Clock = time.time_ns, randomness: Randomness = os.urandom) -> Make:
    """Return a function that makes UUIDs of version 7, as Python's uuid7 does (from 3.14 on).

    A UUID has the time in milliseconds (48 bits), a counter (42 bits), 32 random bits, and 6 bits for version
    and variant. The first UUID of a millisecond has a random counter in the lower half of the range. Each
    later UUID has a counter that is greater by 1 (RFC 9562, 5.7 and 6.2, method 1). If the clock goes back,
    the latest time is used again.
    """
    latest = counter = 0

    def make() -> bytes:
        nonlocal latest, counter
        now = max(latest, clock() // NS_PER_MS)  # The system clock may go back.
        drawn, tail = divmod(int.from_bytes(randomness(10)), 1 << 32)
        counter = counter + 1 if now == latest else drawn >> 7
        latest = now
        high, low = divmod(counter, 1 << 30)
        return (now << 80 | 7 << 76 | high << 64 | 2 << 62 | low << 32 | tail).to_bytes(SIZE)

    return make


MAKERS: dict[str, Callable[[], Make]] = {
    "uuid4": uuid4_maker,
    "ulid": ulid_maker,
    "uuid7": uuid7_maker,
}
"""Functions that return a maker of ids, by type of id, without "int"."""
