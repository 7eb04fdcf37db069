"""Where a case's data lies with Turso: files of SQLite's format, as SQLite's place has them.

A worker reads and writes them with Turso. The parent makes, reads and examines them with SQLite, before the
worker has them open and after: what is proven is proven by another library than the one that was measured.
What only the parent does is imported when it does it: a worker needs none of it.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from sqlstress.targets.sqlite.place import SqlitePlace, file_names
from sqlstress.targets.views import Untold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlstress.report import Check, Space
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Definition, Snapshot
    from sqlstress.targets.seal import Seal
    from sqlstress.targets.turso.keyvalue import TursoStore
    from sqlstress.targets.turso.table import TursoTable
    from sqlstress.targets.views import NativeStore


HELD_OPEN = ("", "-wal")
"""Suffixes of the files that a connection to a database keeps open."""


class TursoPlace(Untold):
    """The files of a case."""

    stores: Literal[True] = True

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where = case, where
        self.paths = [where / name for name in file_names(case.buckets)]
        """The database files, by bucket."""

    @cached_property
    def sqlite(self) -> SqlitePlace:
        """The same files, as SQLite has them: for the parent."""
        from sqlstress.targets.turso.settings import as_sqlite

        return SqlitePlace(as_sqlite(self.case), self.where)

    def keyvalue(self, worker: int, begin: str, sample: Any) -> TursoStore:
        from sqlstress.targets.turso.keyvalue import TursoStore

        return TursoStore(self, begin)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        """Yield it on a database in memory: it is made by the parent, which keeps its hands off the files."""
        from sqlstress.targets.turso.connections import MEMORY, TursoConnection

        with closing(TursoConnection(MEMORY)) as connection:
            execute = connection.cursor().execute
            yield lambda: execute("SELECT 1", ()).fetchall()

    def native(self, worker: int, begin: str) -> NativeStore:
        from sqlstress.errors import EnvironmentFailure

        raise EnvironmentFailure("Turso has no loop in C. Use --loop python.")

    def seal(self) -> Seal:
        from sqlstress.targets.seal import Seal

        return Seal(path.with_name(path.name + suffix) for path in self.paths for suffix in HELD_OPEN)

    def table(self, key_type: str, value_size: int, counters: int) -> TursoTable:
        from sqlstress.targets.turso.table import TursoTable

        return TursoTable(self, key_type, value_size, counters)

    def schema(self) -> Sequence[Definition]:
        return self.sqlite.schema()

    def snapshot(self, pulse: Pulse) -> Snapshot:
        return self.sqlite.snapshot(pulse)

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        from sqlstress.targets.turso.settings import differences

        return differences(self.case, effective)

    def integrity(self, level: str, pulse: Pulse) -> Check:
        return self.sqlite.integrity(level, pulse)

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check:
        return self.sqlite.redefined(created, pulse)

    def space(self, pulse: Pulse) -> Space | None:
        return self.sqlite.space(pulse)

    def discard(self) -> None:
        self.sqlite.discard()
