"""A worker's half: the picks of one user after the other, a transaction each.

Identifiers are made row by row while the transaction is open, in Python or inside SQLite, so what it
costs to make them is in its time either way. A library is imported when its identifiers are to be made:
a worker imports the least it can.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.statistics.units import NS_PER_MS

if TYPE_CHECKING:
    from sqlstress.experiments.classics.keys import Picks
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.sqlite.drivers import Connection
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation

USERS = "SELECT id FROM users ORDER BY rowid"
ITEMS = "SELECT id FROM items ORDER BY rowid"
NEW_ID = "new_id"
"""Name of the function that makes an identifier inside SQLite."""

Row = tuple[Any, ...]


class UserPicks(NamedTuple):
    """What one transaction inserts."""

    user: Any
    """The user's id."""
    items: Sequence[Any]
    """The items' ids."""
    first: int
    """The first of the user's numbers."""


class KeysSource(OrderedSource):
    """Inserts the picks of every user that is this worker's; where nothing is stored, it makes their rows."""

    kinds = ("picks",)

    def __init__(
        self, case: Case, place: SqlitePlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        client = place.client(worker) if place.stores else None
        users: Sequence[Any] = range(case.spec.users)
        items: Sequence[Any] = range(case.spec.items)
        rows = rows_of(case.spec)
        insert: Operation = lambda user_picks: deque(rows(user_picks), 0)  # noqa: E731
        if client:
            connection = client.connect(0)
            users, items = ([row[0] for row in connection.rows(sql)] for sql in (USERS, ITEMS))
            insert = client.retried(insertion(case.spec, connection, rows), connection.rollback)

        def steps() -> Iterator[Step]:
            for user in users_of(case, worker):
                picked = [items[item] for item in picked_by(case, user)]
                yield Step(
                    0, insert, UserPicks(users[user], picked, first_number(case.spec, user)), len(picked)
                )

        super().__init__(shared[0], worker, client, steps())


def rows_of(picks: Picks) -> Callable[[UserPicks], Iterable[Row]]:
    """Return a function from a user's picks to their rows, which makes ids while it is iterated over."""
    if not picks.own_id or picks.made_by == "sqlite":
        return lambda of: ((of.user, item) for item in of.items)
    if picks.id_type == "int":
        return lambda of: ((number, of.user, item) for number, item in zip(count(of.first), of.items))
    make = MAKERS[picks.id_type]()
    return lambda of: ((make(), of.user, item) for item in of.items)


def insertion(picks: Picks, connection: Connection, rows: Callable[[UserPicks], Iterable[Row]]) -> Operation:
    """Return what inserts a user's picks in one transaction."""
    if picks.own_id and picks.made_by == "sqlite" and picks.id_type != "int":
        connection.function(NEW_ID, 0, MAKERS[picks.id_type]())
    start, end = connection.writer(f"BEGIN {picks.begin}"), connection.writer("COMMIT")
    insert = insert_statement(picks)

    def insert_all(user_picks: UserPicks) -> None:
        start(())
        connection.run_many(insert, rows(user_picks))
        end(())

    return insert_all


def insert_statement(picks: Picks) -> str:
    """Return the statement that inserts a pick: its parameters are an id, if Python makes one, user, item."""
    if not picks.own_id:
        return "INSERT INTO picks (user, item) VALUES (?, ?)"
    made = "?"
    if picks.made_by == "sqlite":
        made = f"{NEW_ID}()"
        if picks.id_type == "int":
            # SQLite numbers rows by itself where the number is the rowid.
            has_rowid = picks.schema == "id-rowid"
            made = "NULL" if has_rowid else "(SELECT coalesce(max(id), 0) + 1 FROM picks)"
    return f"INSERT INTO picks (id, user, item) VALUES ({made}, ?, ?)"


# Who picks what: drawn from the seed, so that the workers and the proof know it without being told.
#
# The same seed is the same work, whatever the schema and the type of the identifiers.


def users_of(case: Case, worker: int) -> range:
    """Return the users, from 0, whose picks a worker inserts, in its order; workers count from 1."""
    return range(worker - 1, case.spec.users, case.concurrency)


def picked_by(case: Case, user: int) -> list[int]:
    """Return the items, from 0, that a user picks, in the order in which they are inserted."""
    picks: Picks = case.spec
    random = Random(f"{case.seed}:picks:{user}")
    count = random.randint(2 * picks.picks - picks.most_picks, picks.most_picks)
    return random.sample(range(picks.items), count)


def first_number(picks: Picks, user: int) -> int:
    """Return the first of a user's range of numbers, where ids are numbers that Python makes.

    A process that takes a whole range need ask nobody for the next number.
    """
    return user * picks.most_picks + 1


# Identifiers as one process makes them: 16 bytes each, as an application's library makes them.
#
# A "ulid" has random bits of its own, so that the order within a millisecond is left to chance; a "uuid4"
# has no order at all. The fifth type, "int", is made where it is used.


Make = Callable[[], bytes]
Clock = Callable[[], int]
"""Nanoseconds since 1970."""
Randomness = Callable[[int], bytes]
"""So many random bytes."""

SIZE = 16
"""Bytes of an identifier."""
ASCENDING = ("int", "ulid-monotonic", "uuid7")
"""The types of which each one is greater than all that the same process made before."""


def steady_ms(clock: Clock = time.time_ns) -> Callable[[], int]:
    """Return a clock of milliseconds since 1970 that never goes back, as the system's does when it is set."""
    latest = 0

    def now() -> int:
        nonlocal latest
        latest = max(latest, clock() // NS_PER_MS)
        return latest

    return now


def uuid4_maker() -> Make:
    """122 random bits (RFC 9562, 5.4)."""
    from uuid import uuid4

    return lambda: uuid4().bytes


def ulid_maker() -> Make:
    """The millisecond, then 80 random bits."""
    from ulid import PureRandomPolicy, ULIDGenerator

    generate = ULIDGenerator(policy=PureRandomPolicy()).generate
    return lambda: generate().bytes


def monotonic_ulid_maker(clock: Clock = time.time_ns, randomness: Randomness = os.urandom) -> Make:
    """The same, but within a millisecond the random part of the last one, plus one.

    Raises ValueError when that overflows, as the specification asks; it has to happen to nobody.
    Source: https://github.com/ulid/spec#monotonicity
    """
    from ulid import StrictMonotonicPolicy, ULIDGenerator
    from ulid.constants import RANDOMNESS_LEN

    # The policy takes an earlier millisecond for a new one: it is the clock that must not go back.
    generate = ULIDGenerator(
        steady_ms(clock), lambda _: randomness(RANDOMNESS_LEN), StrictMonotonicPolicy()
    ).generate
    return lambda: generate().bytes


def uuid7_maker(clock: Clock = time.time_ns, randomness: Randomness = os.urandom) -> Make:
    """The millisecond, a counter of 42 bits, 32 random bits (RFC 9562, 5.7 and 6.2, method 1).

    The counter begins every millisecond at a random number below half of its range: nobody makes as many
    identifiers in a millisecond as are left then. Python's own, from 3.14 on, is built the same way.
    """
    now_ms = steady_ms(clock)
    latest = counter = 0

    def make() -> bytes:
        nonlocal latest, counter
        now = now_ms()
        drawn, tail = divmod(int.from_bytes(randomness(10)), 1 << 32)
        counter = counter + 1 if now == latest else drawn >> 7
        latest = now
        high, low = divmod(counter, 1 << 30)
        return (now << 80 | 7 << 76 | high << 64 | 2 << 62 | low << 32 | tail).to_bytes(SIZE)

    return make


def best_uuid7_maker() -> Make:
    """Python's own where there is one, else ours."""
    if sys.version_info >= (3, 14):
        from uuid import uuid7

        return lambda: uuid7().bytes
    return uuid7_maker()


MAKERS: dict[str, Callable[[], Make]] = {
    "uuid4": uuid4_maker,
    "ulid": ulid_maker,
    "ulid-monotonic": monotonic_ulid_maker,
    "uuid7": best_uuid7_maker,
}
"""Type, other than "int" → what makes its identifiers."""
