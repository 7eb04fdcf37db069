"""Where a case's data lies with SQLite: a file for each bucket, side by side in one folder.

What only the parent does is imported when it does it: a worker needs none of it.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sqlstress.targets.sqlite.connections import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.report import Check, Space, WorkerResult
    from sqlstress.report.case import Case
    from sqlstress.report.results import Where
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.directions import Directions
    from sqlstress.targets.seal import Seal
    from sqlstress.targets.sqlite.connections import SqliteNativeStore, SqliteStore
    from sqlstress.targets.sqlite.drivers import Connection, Row
    from sqlstress.targets.sqlite.files import SqliteSnapshot, SqliteTable
    from sqlstress.targets.sqlite.scripts_view import SqliteMaker, SqliteReader
    from sqlstress.targets.sqlite.where_recording import Watch

HELD_OPEN = ("", "-wal", "-shm")
"""Suffixes of the files that a connection to a database keeps open; a rollback journal comes and goes."""


def file_names(buckets: int) -> list[str]:
    """Return the names of the database files, one for each bucket."""
    return ["kv.db"] if buckets == 1 else [f"kv_{bucket}.db" for bucket in range(buckets)]


class SqlitePlace:
    """The files of a case. Beyond a Place, it says where they are, and opens them for who speaks SQL."""

    stores: Literal[True] = True

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where = case, where
        self.paths = [where / name for name in file_names(case.buckets)]
        """The database files, by bucket."""
        self._watch: Watch | None = None

    def watch(self, trace: Any, process: int) -> Watch:
        from sqlstress.targets.sqlite.where_recording import Watch

        words, processes = trace
        self._watch = Watch(self.case.driver, words, process, processes)
        return self._watch

    def trace(self, processes: int) -> tuple[Any, int]:
        from sqlstress.system.sharing import shared_array
        from sqlstress.targets.sqlite.where_recording import size

        return shared_array("q", size(processes)), processes

    def account(self, trace: Any, workers: Sequence[WorkerResult]) -> Where | None:
        from sqlstress.targets.sqlite.where import account

        words, processes = trace
        return account(words, processes, workers)

    def client(self, worker: int) -> Client:
        """Return a worker's connections, none of which is opened yet."""
        return Client(self.case, self.paths, worker, self._watch)

    def keyvalue(self, worker: int, begin: str, sample: Any) -> SqliteStore:
        from sqlstress.targets.sqlite.connections import SqliteStore

        return SqliteStore(self.client(worker), begin)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        with closing(self.client(0)) as client:
            one = client.connect(0).scalar("SELECT 1")
            yield lambda: one(())

    def native(self, worker: int, begin: str) -> SqliteNativeStore:
        from sqlstress.targets.sqlite.connections import SqliteNativeStore

        return SqliteNativeStore(self.client(worker), begin)

    def seal(self) -> Seal:
        from sqlstress.targets.seal import Seal
        from sqlstress.targets.sqlite.drivers.settings import KEPT

        # An application closes its connections as it likes, and the last one takes the WAL along.
        held = HELD_OPEN[:1] if self.case.settings.journal_mode == KEPT else HELD_OPEN
        return Seal(path.with_name(path.name + suffix) for path in self.paths for suffix in held)

    def table(self, key_type: str, value_size: int, counters: int) -> SqliteTable:
        from sqlstress.targets.sqlite.files import SqliteTable

        return SqliteTable(self, key_type, value_size, counters)

    def create_tables(self, definitions: Iterable[str], pulse: Pulse) -> None:
        """Make every file anew, with the settings of the case and these tables."""
        from sqlstress.targets.sqlite.files import create_tables

        definitions = tuple(definitions)
        self.discard()
        for path in self.paths:
            pulse()
            create_tables(self.case, path, definitions)

    def opened(self, bucket: int = 0) -> AbstractContextManager[Connection]:
        """Open a file for the parent, as `files.opened` does."""
        from sqlstress.targets.sqlite.files import opened

        return opened(self.case, self.paths[bucket])

    def directions(self) -> Directions:
        from sqlstress.targets.directions import Directions

        return Directions(str(self.paths[0].absolute()), {})

    def clear(self) -> None:
        """Leave nothing, not even a file: an application finds what it would find."""
        self.discard()

    def is_filled(self) -> bool:
        return self.paths[0].is_file() and self.paths[0].stat().st_size > 0

    def settle(self, pulse: Pulse) -> None:
        """Leave it as it was made: its settings are the application's."""

    def rows_written(self, pulse: Pulse) -> None:
        return None

    def reader(self) -> SqliteReader:
        from sqlstress.targets.sqlite.scripts_view import SqliteReader

        return SqliteReader(self.case.driver, self.client(0).connect(0))

    @contextmanager
    def reading(self, pulse: Pulse) -> Iterator[SqliteReader]:
        from sqlstress.targets.sqlite.scripts_view import SqliteReader

        with self.opened() as connection:
            yield SqliteReader(self.case.driver, connection)

    def making(self, pulse: Pulse) -> AbstractContextManager[SqliteMaker]:
        from sqlstress.targets.sqlite.scripts_view import making

        return making(self, pulse)

    def schema(self) -> list[Row]:
        from sqlstress.targets.sqlite.integrity import schema

        return schema(self.case, self.paths[0])

    def snapshot(self, pulse: Pulse) -> SqliteSnapshot:
        from sqlstress.targets.sqlite.files import SqliteSnapshot

        return SqliteSnapshot(self.case, self.paths, pulse)

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        from sqlstress.targets.sqlite.drivers.settings import differences

        return differences(self.case.settings, effective)

    def integrity(self, level: str, pulse: Pulse) -> Check:
        from sqlstress.targets.sqlite.integrity import integrity_check

        return integrity_check(self.case, self.paths, level, pulse)

    def redefined(self, created: Sequence[Row], pulse: Pulse) -> Check:
        from sqlstress.targets.sqlite.integrity import schema_check

        return schema_check(self.case, self.paths, created, pulse)

    def space(self, pulse: Pulse) -> Space | None:
        """Return what the pages of the only file hold; of several nothing is said."""
        from sqlstress.targets.sqlite.space import measure_space

        return measure_space(self.case, self.paths[0], pulse) if len(self.paths) == 1 else None

    def discard(self) -> None:
        from sqlstress.targets.sqlite.files import remove

        remove(self.case, self.where)
