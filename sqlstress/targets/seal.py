"""Files as they were, to be looked at without being opened: whether a name has gone to another file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from pathlib import Path

    from sqlstress.system.interrupt import Pulse


class Seal:
    """Files as they were when it was made. One that was not there then is none of its business.

    A process that works on a file does not see that its name has gone to another one: it goes on with
    a deleted file as if nothing had happened, as fast as before.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        """Raises OSError when it can't be told what a file is."""
        self._files = [(path, found) for path in paths if (found := _identity(path))]

    def broken(self) -> str | None:
        """Say which file is another one now, or gone, or that it can't be told; None when none is."""
        try:
            return self.exchanged()
        except OSError as error:
            return f"a database file could not be looked at ({error.strerror})"

    def exchanged(self) -> str | None:
        """Say the same, or raise OSError where it can't be told."""
        for path, before in self._files:
            now = _identity(path)
            if now != before:
                return f"{path.name} was {'replaced by another file' if now else 'deleted'}"
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the number of a file; None when there is none. Raises OSError."""
    try:
        found = _stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _stat(path: Path) -> os.stat_result:
    """Look at a file, also where others have it open in a way that denies that for a moment."""
    try:
        return path.stat()
    except PermissionError:
        from sqlstress.system.files import tried_again  # a worker needs it no more often

        return tried_again(path.stat)


class SealedFiles:
    """The snapshot of a place of which nothing but its files can be told apart from what workers do."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._seal = Seal(paths)

    def exchanged(self) -> str | None:
        return self._seal.exchanged()

    def changed(self, pulse: Pulse) -> None:
        return None
