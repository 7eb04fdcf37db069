"""Changes to files that others have open for a moment, as a virus scanner does: Windows denies them then."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

_TRIES = 20
_PAUSE_S = 0.05


def tried_again(change: Callable[[], object]) -> None:
    """Make a change to a file, for a second again and again while it is denied. Raises OSError."""
    for _ in range(_TRIES - 1):
        try:
            change()
            return
        except PermissionError:
            time.sleep(_PAUSE_S)
    change()


def remove(path: Path) -> None:
    """Remove a file, if it is there, in the same way. Raises OSError."""
    tried_again(lambda: path.unlink(missing_ok=True))
