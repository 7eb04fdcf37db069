"""A worker's half: the picks of one user after the other, a transaction each.

Identifiers are made row by row while the transaction is open, in Python or inside SQLite, so what it
costs to make them is in its time either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.engine.protocols import Findings
from sqlstress.experiments.keys import ids, schemas
from sqlstress.experiments.keys.ids import first_number, picked_by, picks_in, users_of

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.dry.store import DryPlace
    from sqlstress.targets.sqlite.drivers import Connection
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation

USERS = "SELECT id FROM users ORDER BY rowid"
ITEMS = "SELECT id FROM items ORDER BY rowid"

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
        self._case = case
        picks = picks_in(case)
        self._client = place.client(worker) if place.stores else None
        users: Sequence[Any] = range(picks.users)
        items: Sequence[Any] = range(picks.items)
        rows = rows_of(case)
        insert: Operation = lambda user_picks: deque(rows(user_picks), 0)  # noqa: E731
        if self._client:
            connection = self._client.connect(0)
            users, items = ([row[0] for row in connection.rows(sql)] for sql in (USERS, ITEMS))
            insert = self._client.retried(insertion(case, connection, rows), connection.rollback)
        super().__init__(shared[0], worker, self._client, self._picks(worker, insert, users, items))

    def _picks(
        self, worker: int, insert: Operation, users: Sequence[Any], items: Sequence[Any]
    ) -> Iterator[Step]:
        picks = picks_in(self._case)
        for user in users_of(self._case, worker):
            picked = [items[item] for item in picked_by(self._case, user)]
            yield Step(0, insert, UserPicks(users[user], picked, first_number(picks, user)), len(picked))

    def findings(self) -> Findings:
        if self._client:
            self.seen.effective = self._client.effective()
        return self.seen

    def close(self) -> None:
        if self._client:
            self._client.close()


def rows_of(case: Case) -> Callable[[UserPicks], Iterable[Row]]:
    """Return a function from a user's picks to their rows, which makes ids while it is iterated over."""
    picks = picks_in(case)
    if not picks.own_id or picks.made_by == "sqlite":
        return lambda one: ((one.user, item) for item in one.items)
    if picks.id_type == "int":
        return lambda one: ((number, one.user, item) for number, item in zip(count(one.first), one.items))
    make = ids.maker(picks.id_type)
    return lambda one: ((make(), one.user, item) for item in one.items)


def insertion(case: Case, connection: Connection, rows: Callable[[UserPicks], Iterable[Row]]) -> Operation:
    """Return what inserts a user's picks in one transaction."""
    picks = picks_in(case)
    if picks.own_id and picks.made_by == "sqlite" and picks.id_type != "int":
        connection.function(schemas.NEW_ID, 0, ids.maker(picks.id_type))
    start, end = connection.writer(f"BEGIN {picks.begin}"), connection.writer("COMMIT")
    insert = schemas.insertion(picks)

    def insert_all(one: UserPicks) -> None:
        start(())
        connection.run_many(insert, rows(one))
        end(())

    return insert_all
