"""Where a case's data lies on a server: a schema of our own, and in it a table for each bucket.

What only the parent does is imported when it does it: a worker needs none of it.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sqlstress.target import AS_SET
from sqlstress.targets.postgres.address import dsn_of, schema_of
from sqlstress.targets.views import Untold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.report import Check, Space
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.directions import Directions
    from sqlstress.targets.place import Definition
    from sqlstress.targets.postgres.client import PostgresNativeStore, PostgresStore
    from sqlstress.targets.postgres.schema import Connection, Owner
    from sqlstress.targets.postgres.scripts import PostgresScripts
    from sqlstress.targets.postgres.sql import PostgresMaker, PostgresReader
    from sqlstress.targets.postgres.tables import PostgresSnapshot, PostgresTable


class PostgresPlace(Untold):
    """A schema of a case, called after the folder that the case was given."""

    stores: Literal[True] = True

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where = case, where
        self.name = schema_of(where)
        """The schema's."""
        self._owner: Owner | None = None

    def keyvalue(self, worker: int, begin: str, sample: Any) -> PostgresStore:
        from sqlstress.targets.postgres.client import PostgresStore

        return PostgresStore(self.case, self.name, begin)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        from sqlstress.targets.postgres.client import Client

        with closing(Client(self.case, self.name)) as client:
            client.prepare(b"bare", "SELECT 1")
            one = client.prepared(b"bare", 0)
            yield lambda: one(())

    def native(self, worker: int, begin: str) -> PostgresNativeStore:
        from sqlstress.targets.postgres.client import PostgresNativeStore

        return PostgresNativeStore(self.case, self.name, begin)

    def seal(self) -> None:
        """Seal nothing: a session goes on with the tables that it found, or fails."""

    @property
    def owner(self) -> Owner:
        """Who holds the schema, in the parent."""
        from sqlstress.targets.postgres.schema import Owner

        if self._owner is None:
            self._owner = Owner(dsn_of(self.case), self.name)
        return self._owner

    @contextmanager
    def read(self, pulse: Pulse) -> Iterator[Connection]:
        """Connect to read what is there when no worker of ours is connected any more."""
        from sqlstress.targets.postgres.schema import RECOVERY_S, await_quiet, opened

        with opened(dsn_of(self.case), f"cannot read {self.name}", RECOVERY_S) as connection:
            await_quiet(connection, self.name, pulse)
            yield connection

    def table(self, key_type: str, value_size: int, counters: int) -> PostgresTable:
        from sqlstress.targets.postgres.tables import PostgresTable

        return PostgresTable(self, key_type, value_size, counters)

    def directions(self) -> Directions:
        from sqlstress.targets.postgres.programs import directions, resolved

        isolation = self.case.server.isolation if self.case.server else AS_SET
        return directions(resolved(dsn_of(self.case)), self.name, None if isolation == AS_SET else isolation)

    def clear(self) -> None:
        """Leave the schema, and nothing in it."""
        self.owner.make()

    def is_filled(self) -> bool:
        return bool(self.schema())

    def settle(self, pulse: Pulse) -> None:
        from sqlstress.targets.postgres.sql import settle

        settle(self, pulse)

    def rows_written(self, pulse: Pulse) -> int | None:
        from sqlstress.targets.postgres.programs import rows_written

        with self.read(pulse) as connection:
            return rows_written(connection, self.name)

    def client(self, worker: int) -> PostgresScripts:
        from sqlstress.targets.postgres.scripts import PostgresScripts

        return PostgresScripts(self.case, self.name)

    def reader(self) -> PostgresReader:
        from sqlstress.targets.postgres.sql import reader

        return reader(self)

    @contextmanager
    def reading(self, pulse: Pulse) -> Iterator[PostgresReader]:
        from sqlstress.targets.postgres.sql import PostgresReader

        with self.read(pulse) as connection:
            yield PostgresReader(self, connection)

    def making(self, pulse: Pulse) -> AbstractContextManager[PostgresMaker]:
        from sqlstress.targets.postgres.sql import making

        return making(self, pulse)

    def schema(self) -> Sequence[Definition]:
        from sqlstress.targets.postgres.tables import definitions

        with self.read(lambda: None) as connection:
            return definitions(connection, self.name)

    def snapshot(self, pulse: Pulse) -> PostgresSnapshot:
        from sqlstress.targets.postgres.tables import PostgresSnapshot

        return PostgresSnapshot(self, pulse)

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        from sqlstress.targets.postgres.settings import differences

        return differences(self.case, effective)

    def integrity(self, level: str, pulse: Pulse) -> Check:
        from sqlstress.targets.postgres.tables import integrity_check

        return integrity_check(self, level, pulse)

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check:
        from sqlstress.targets.postgres.tables import schema_check

        return schema_check(self, created, pulse)

    def space(self, pulse: Pulse) -> Space | None:
        """Return the size of the only table, with its index; of several nothing is said."""
        from sqlstress.targets.postgres.tables import table_size

        return table_size(self, pulse) if self.case.buckets == 1 else None

    def discard(self) -> None:
        self.owner.drop()
