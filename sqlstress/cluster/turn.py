"""A turn on a machine: of all that would measure there for a fleet, one at a time.

A lock on a file in the temporary folder, which ends with its process; the file is removed with the turn.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO

from sqlstress.system.files import lock


class Turn:
    """Waits for its turn; over when it is left."""

    def __init__(self, machine: str, folder: Path | None = None) -> None:
        known = sha256(machine.encode()).hexdigest()[:16]
        self.path = (folder or Path(tempfile.gettempdir())) / f"sqlstress-fleet-{known}.lock"
        self._held: IO[bytes] | None = None

    def __enter__(self) -> Turn:
        return self

    def is_ours(self) -> bool:
        """Try to take the turn; say whether it is ours. Never waits."""
        if self._held is not None:
            return True
        try:
            file = os.fdopen(os.open(self.path, _FLAGS, 0o666), "rb")
        except OSError:
            return False  # another user's, which we may not open
        try:
            lock(file)
            if self._is_there(file):
                self._held = file
                return True
        except OSError:
            pass
        file.close()
        return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is None:
            return
        # Removed while it is held, or another one's would be removed; Windows removes no open file.
        if sys.platform != "win32":
            with suppress(OSError):
                self.path.unlink()
        self._held.close()
        if sys.platform == "win32":
            with suppress(OSError):
                self.path.unlink()
        self._held = None

    def _is_there(self, file: IO[bytes]) -> bool:
        """Say whether what is locked is still the file of that name: who had it may have removed it."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except OSError:
            return False


_FLAGS = os.O_RDONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
