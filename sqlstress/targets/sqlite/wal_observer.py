"""Observer that samples the size and use of a database's WAL while workers use the database.
The observer keeps the wal-index (suffix -shm) open until its process has no connections to the database: on
POSIX, closing a database's file drops the locks of the process's connections.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from sqlstress.report.results import WalUse
from sqlstress.targets.sqlite.walindex import OpenIndex, WalIndex, wal_bytes


class WalObserver:
    """Sampler of the size and use of a database's WAL, in the process that starts the workers."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._index: OpenIndex | None = None
        self._identity: tuple[int, int] | None = None
        self._largest_bytes = self._end_bytes = 0
        self._peak: WalIndex | None = None
        self._end: WalIndex | None = None

    def look(self) -> None:
        """Take a sample. If the wal-index is missing or unreadable, record only the size of the WAL."""
        self._end_bytes = wal_bytes(self._database)
        self._largest_bytes = max(self._largest_bytes, self._end_bytes)
        index = self._open_index()
        if index and (state := index.read()):
            self._end = state
            if not self._peak or state.frames >= self._peak.frames:
                self._peak = state

    def _open_index(self) -> OpenIndex | None:
        try:
            if self._identity != (identity := self._index_identity()):
                self.close()
                self._index = OpenIndex(self._database)
                self._identity = identity
        except (OSError, ValueError):
            return None
        return self._index

    def _index_identity(self) -> tuple[int, int]:
        status = self._database.with_name(f"{self._database.name}-shm").stat()
        return status.st_dev, status.st_ino

    def end(self) -> None:
        """After the workers have ended, close a deleted wal-index, to free the disk space."""
        identity = None
        with suppress(OSError):
            identity = self._index_identity()
        # On Windows, close the file in any case, because Windows cannot delete an open file.
        if sys.platform == "win32" or identity != self._identity:
            self.close()

    def close(self) -> None:
        """Close the wal-index, after this process has closed its connections to the database."""
        if self._index:
            with suppress(OSError):
                self._index.close()
        self._index = self._identity = None

    def use(self) -> WalUse | None:
        """Return the sizes of the WAL at its largest and at the end; None if there was no sample."""
        peak, end = self._peak, self._end
        if not peak or not end:
            return None
        return WalUse(
            page_size=end.page_size,
            largest_bytes=self._largest_bytes,
            end_bytes=self._end_bytes,
            most_frames=peak.frames,
            most_checkpointed=peak.checkpointed,
            frames=end.frames,
            checkpointed=end.checkpointed,
        )
