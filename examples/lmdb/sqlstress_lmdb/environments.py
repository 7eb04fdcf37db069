"""LMDB's environments, a file each: opened once in a process, whoever asks, and never before a fork.

LMDB forbids a second one of the same file in a process: closing it would take the first one's locks.
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
"""What the name of the file with the locks has more than that of the data."""
DATABASES = (KV, COUNTER) = (b"kv", b"counter")
"""What lies in an environment, by name."""

_PAGE = 4096
_LEAST_MAP = 16 << 20
_SPARE_READERS = 16
"""For the parent, and for the slots of those that were killed."""
_GENERATIONS = 8
"""Pages that a commit replaces are free after the next one: of what it writes there are several."""


def load() -> Any:
    """Import the binding. Raises NotInstalled."""
    try:
        return import_module("lmdb")
    except ImportError as error:
        raise NotInstalled("lmdb", "lmdb", error) from error


def map_size(case: Case) -> int:
    """Return the bytes of address space that the data of a bucket may grow into; the file is no larger than
    what was written, but on Windows.
    """
    load = case.spec
    share = load.key_space // case.buckets * 2 + 1000
    row = _row_bytes(load.value_size)
    needed: int = _LEAST_MAP + 3 * share * row + _GENERATIONS * load.batch * (row + 2 * _PAGE)
    return -(-needed // _LEAST_MAP) * _LEAST_MAP


def _row_bytes(value_size: int) -> int:
    """Return what a row takes in pages that are half full; a long value has pages of its own."""
    short = 2 * (48 + value_size)
    return short if short < _PAGE else 96 + -(-(value_size + 16) // _PAGE) * _PAGE


class _Shared:
    """An environment, and how many hold it."""

    def __init__(self, environment: Any) -> None:
        self.environment, self.holders = environment, 0


_OPEN: dict[str, _Shared] = {}
"""Those that this process has open, by their path."""


class Held:
    """An environment that somebody uses; the last one to let go of it closes it."""

    def __init__(self, case: Case, path: Path, *, create: bool = False, **flags: bool) -> None:
        """Raises EnvironmentFailure. `flags` say how it is synced, if nobody has opened it before."""
        self._path = str(path.absolute())
        shared = _OPEN.get(self._path)
        if shared is None:
            shared = _OPEN[self._path] = _Shared(_opened(case, path, create=create, **flags))
        shared.holders += 1
        self.environment: Any = shared.environment
        self.full: type[Exception] = load().MapFullError
        """What a write raises for which the map has no room."""

    def database(self, name: bytes) -> Any:
        """Return a database that is there. Waits for whoever is writing."""
        return self.environment.open_db(name, create=False)

    def make_room(self, error: Exception) -> None:
        """Let go of what is kept for readers that have died; raise the error where there are none.

        A reader that was killed keeps the pages of its snapshot until somebody looks for the dead.
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
    if not create and not path.exists():  # LMDB would make it anew
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
