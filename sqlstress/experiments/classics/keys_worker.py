"""Worker of the experiment keys: it inserts the picks of users, in one transaction per user.

A pick is a row with the ids of a user and an item, and in some schemas with its own id. The worker makes this
id during the transaction, so that the measured time includes its cost. Users and items are numbered from 0,
workers from 1.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, OrderedStep
from sqlstress.statistics.units import NS_PER_MS

if TYPE_CHECKING:
    from sqlstress.experiments.classics.spec import Picks
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.sqlite.drivers import Connection, Row
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation

USERS = "SELECT id FROM users ORDER BY rowid"
ITEMS = "SELECT id FROM items ORDER BY rowid"


class UserPicks(NamedTuple):
    """Picks of a user, which a single transaction inserts: a row for each item."""

    user: Any
    """Id of the user."""
    items: Sequence[Any]
    """Ids of the items."""
    first: int
    """Id of the user's first pick, if ids are integers."""


class KeysSource(OrderedSource):
    """Source of steps. A step inserts the picks of a user; with the driver `dry` it only makes the rows."""

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

        def steps() -> Iterator[OrderedStep]:
            for user in users_of(case, worker):
                picked = [items[item] for item in picked_by(case, user)]
                user_picks = UserPicks(users[user], picked, first_number(case.spec, user))
                yield OrderedStep(0, insert, user_picks, len(picked))

        super().__init__(shared[0], worker, client, steps())


def rows_of(picks: Picks) -> Callable[[UserPicks], Iterable[Row]]:
    """Return a function that turns a user's picks into rows of the table, one row at a time."""
    if not picks.own_id:
        return lambda of: ((of.user, item) for item in of.items)
    if picks.id_type == "int":
        return lambda of: ((number, of.user, item) for number, item in zip(count(of.first), of.items))
    make = MAKERS[picks.id_type]()
    return lambda of: ((make(), of.user, item) for item in of.items)


def insertion(picks: Picks, connection: Connection, rows: Callable[[UserPicks], Iterable[Row]]) -> Operation:
    """Return an operation that inserts a user's picks in one transaction."""
    start, end = connection.writer(f"BEGIN {picks.begin}"), connection.writer("COMMIT")
    insert = insert_statement(picks)

    def insert_all(user_picks: UserPicks) -> None:
        start(())
        connection.run_many(insert, rows(user_picks))
        end(())

    return insert_all


def insert_statement(picks: Picks) -> str:
    """Return the SQL that inserts a pick."""
    if picks.own_id:
        return "INSERT INTO picks (id, user, item) VALUES (?, ?, ?)"
    return "INSERT INTO picks (user, item) VALUES (?, ?)"


# The picks of a user follow from the seed, not from the schema or the type of id. So the workers and the
# check of the data compute the picks independently.


def users_of(case: Case, worker: int) -> range:
    """Return the numbers of the users whose picks (rows for a user and an item) a worker inserts."""
    return range(worker - 1, case.spec.users, case.concurrency)


def picked_by(case: Case, user: int) -> list[int]:
    """Return the numbers of the items that a user picks, in the order of insertion."""
    picks: Picks = case.spec
    random = Random(f"{case.seed}:picks:{user}")
    count = random.randint(2 * picks.picks - picks.most_picks, picks.most_picks)
    return random.sample(range(picks.items), count)


def first_number(picks: Picks, user: int) -> int:
    """Return the first integer id of a user's picks. Each user has a range of ids: no counter is shared."""
    return user * picks.most_picks + 1


# Makers of ids with 16 bytes. They use libraries, as an application would. Libraries are imported when they
# are needed, because an import delays the start of a worker.


Make = Callable[[], bytes]
Clock = Callable[[], int]
"""Function that returns the nanoseconds since 1970."""
Randomness = Callable[[int], bytes]
"""Function that returns random bytes. Its argument is their number."""

SIZE = 16
"""Size of an id, in bytes, unless it is an integer."""
ASCENDING = ("int", "ulid-monotonic", "uuid7")
"""Types of id in which each id is greater than all earlier ids of the same process."""


def steady_ms(clock: Clock = time.time_ns) -> Callable[[], int]:
    """Return a clock: a function that returns milliseconds since 1970 and never goes back."""
    latest = 0

    def now() -> int:
        nonlocal latest
        latest = max(latest, clock() // NS_PER_MS)
        return latest

    return now


def uuid4_maker() -> Make:
    """Return a function that makes ids with 122 random bits (RFC 9562, 5.4)."""
    from uuid import uuid4

    return lambda: uuid4().bytes


def ulid_maker() -> Make:
    """Return a function that makes ULIDs: the time in milliseconds, then 80 random bits."""
    from ulid import PureRandomPolicy, ULIDGenerator

    generate = ULIDGenerator(policy=PureRandomPolicy()).generate
    return lambda: generate().bytes


def monotonic_ulid_maker(clock: Clock = time.time_ns, randomness: Randomness = os.urandom) -> Make:
    """Return a function that makes ULIDs; within a millisecond, each is the previous ULID plus 1.

    The function raises ValueError if the random part overflows. Source: https://github.com/ulid/spec#monotonicity
    """
    from ulid import StrictMonotonicPolicy, ULIDGenerator
    from ulid.constants import RANDOMNESS_LEN

    # StrictMonotonicPolicy takes an earlier time for a new millisecond, so the clock must not go back.
    generate = ULIDGenerator(
        steady_ms(clock), lambda _: randomness(RANDOMNESS_LEN), StrictMonotonicPolicy()
    ).generate
    return lambda: generate().bytes


def uuid7_maker(clock: Clock = time.time_ns, randomness: Randomness = os.urandom) -> Make:
    """Return a function that makes UUIDs: the time in milliseconds, a counter (42 bits), 32 random bits.

    In each millisecond, the counter begins at a random number in the lower half of its range (RFC 9562, 5.7
    and 6.2, method 1), as in Python's uuid7 (from 3.14 on).
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


MAKERS: dict[str, Callable[[], Make]] = {
    "uuid4": uuid4_maker,
    "ulid": ulid_maker,
    "ulid-monotonic": monotonic_ulid_maker,
    "uuid7": uuid7_maker,
}
"""Functions that return a maker of ids, by type of id. The type "int" needs no maker."""
