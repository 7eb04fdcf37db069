"""The files of a trial as its setup left them: they are so again when the first worker opens them.

Before the load several processes open the database: for a look at what is defined in it, for the checks, for
a trial of connect. The first one that does it may recover a WAL, remove it, or make one.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from sqlstress.errors import EnvironmentFailure, message_of

_Mark = tuple[int, int, int]
"""The size, the time and the number of a file."""


class AsLeft:
    """A copy of the files of a folder, in which nobody works meanwhile."""

    def __init__(self, where: Path) -> None:
        """Raises EnvironmentFailure where there is no room."""
        self._where = where
        self._folder = Path(tempfile.mkdtemp(prefix="as-left-", dir=where.parent))
        self._marks = _marks(where)
        try:
            for path in self._marks:
                (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(where / path, self._folder / path)
        except OSError as error:
            self.end()
            raise EnvironmentFailure(f"cannot keep a copy of the database: {message_of(error)}.") from error

    def is_changed(self) -> bool:
        """Return whether a file has been written, removed or made since."""
        return _marks(self._where) != self._marks

    def restore(self) -> None:
        """Make the files what they were; those that are there stay the same files to the system."""
        now = _marks(self._where)
        for path in now.keys() - self._marks.keys():
            (self._where / path).unlink()
        for path, mark in self._marks.items():
            if now.get(path) != mark:
                (self._where / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self._folder / path, self._where / path)

    def end(self) -> None:
        """Remove the copy."""
        with suppress(OSError):
            shutil.rmtree(self._folder)


def _marks(where: Path) -> dict[Path, _Mark]:
    paths = (path for path in where.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(where): _mark(path) for path in paths}


def _mark(path: Path) -> _Mark:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino
