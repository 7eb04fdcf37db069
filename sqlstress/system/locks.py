"""Locks on files, which say whether their owner lives.

A lock ends with its process, however that ends, and can't be mistaken for another's.
"""

from __future__ import annotations

import sys
from typing import IO, Any

_AT = 1 << 30


def lock(stream: IO[Any]) -> None:
    """Lock an open file for this process, until it is closed. Raises OSError if another one holds it."""
    if sys.platform == "win32":
        import msvcrt

        # A locked byte can't be read by others on Windows, so it lies far behind the text.
        place = stream.tell()
        stream.seek(_AT)
        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        stream.seek(place)
    else:
        import fcntl

        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
