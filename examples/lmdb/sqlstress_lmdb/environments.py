"""LMDB's environments, a file each: opened once per process, shared by its users, and never before a fork.

LMDB forbids a second environment of the same file in a process: closing it would release the first one's
locks.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure, NotInstalled
from sqlstress_lmdb.settings import explained

if TYPE_CHECKING:
    from sqlstress.report.case import Case

LOCK = "-lock"
"""Suffix of the lock file's name, after the name of the data file."""
DATABASES = (KV, COUNTER) = (b"kv", b"counter")
"""Names of the databases in an environment."""

_PAGE = 4096
_LEAST_MAP = 16 << 20
_SPARE_READERS = 16
"""Slots for the parent, and for the slots of killed processes."""
_GENERATIONS = 8
"""Number of versions of written pages in the file: replaced pages are reusable only after the next commit."""


def load() -> Any:
    """Import the binding. Raises NotInstalled."""
    try:
        return import_module("lmdb")
    except ImportError as error:
        raise NotInstalled("lmdb", "lmdb", error) from error


def map_size(case: Case) -> int:
    """Return the size of a bucket's memory map, in bytes; the file is smaller, except on Windows."""
    load = case.spec
    share = load.key_space // case.buckets * 2 + 1000
    row = _row_bytes(load.value_size)
    needed: int = _LEAST_MAP + 3 * share * row + _GENERATIONS * load.batch * (row + 2 * _PAGE)
    return -(-needed // _LEAST_MAP) * _LEAST_MAP


def _row_bytes(value_size: int) -> int:
    """Return the bytes of a row in pages that are half full; a long value has separate pages."""
    short = 2 * (48 + value_size)
    return short if short < _PAGE else 96 + -(-(value_size + 16) // _PAGE) * _PAGE


class _Shared:
    """An environment, and the number of its holders."""

    def __init__(self, environment: Any) -> None:
        self.environment, self.holders = environment, 0


_OPEN: dict[str, _Shared] = {}
"""Open environments of this process, by path."""


class Held:
    """A use of an environment; the last use to end closes it."""

    def __init__(self, case: Case, path: Path, *, create: bool = False, **flags: bool) -> None:
        """Raises EnvironmentFailure. `flags` set how it is synced, if it is not open yet."""
        self._path = str(path.absolute())
        shared = _OPEN.get(self._path)
        if shared is None:
            shared = _OPEN[self._path] = _Shared(_opened(case, path, create=create, **flags))
        shared.holders += 1
        self.environment: Any = shared.environment
        self.full: type[Exception] = load().MapFullError
        """Exception that a write raises if the map is full."""

    def database(self, name: bytes) -> Any:
        """Return an existing database. Waits for a transaction that is writing."""
        return self.environment.open_db(name, create=False)

    def make_room(self, error: Exception) -> None:
        """Release the pages kept for dead readers; raise the error if there are no dead readers.

        The pages of a killed reader's snapshot stay in use until a process checks for dead readers.
        Source: http://www.lmdb.tech/doc/, Caveats
        """
        if not self.environment.reader_check():
            raise error

    def close(self) -> None:
        shared = _OPEN[self._path]
        shared.holders -= 1
        if not shared.holders:
            del _OPEN[self._path]
            shared.environment.close()


def _opened(case: Case, path: Path, *, create: bool, **flags: bool) -> Any:
    lmdb = load()
    if not create and not path.exists():  # LMDB would create it again
        raise EnvironmentFailure(f"cannot open {path.name}: the file is not there")
    try:
        return lmdb.open(
            str(path),
            subdir=False,
            create=create,
            map_size=map_size(case),
            max_dbs=len(DATABASES),
            max_readers=case.concurrency + _SPARE_READERS,
            readahead=False,
            **flags,
        )
    except (lmdb.Error, OSError, MemoryError, OverflowError) as error:
        raise EnvironmentFailure(f"cannot open {path.name}: {explained(error)}") from error
