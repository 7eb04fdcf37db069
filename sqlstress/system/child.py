"""What a process of ours does for the one that started it: it ends when that one does, and tells it things.

A process can be stopped or killed in the midst of a long message, so messages are sent in pieces: nobody
who receives one waits for what has not been sent. A piece is short enough for the pipes of every system to
take it whole or not at all, so that its rest is there when its beginning is.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection, parent_process
from typing import Any

from sqlstress.errors import EnvironmentFailure

if sys.platform == "win32":
    Pipe = connection.PipeConnection
else:
    Pipe = connection.Connection

PIECE = 2000
"""Bytes: with what multiprocessing adds, fewer than the 2,048 for which macOS makes room before it takes any.
Linux takes whole what is smaller than half a socket's buffer, Windows every message."""
MORE, LAST = b"+", b"."
"""How a piece begins."""
LIFELINES: list[int] = []
"""Descriptors that can be read from when this process has to end: where it was forked, the server's end."""


def send(pipe: Pipe, message: Any) -> None:
    """Send a message. Raises OSError when nobody receives it any more."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    for start in range(0, len(data), PIECE):
        end = start + PIECE
        pipe.send_bytes((MORE if end < len(data) else LAST) + data[start:end])


def begin_child() -> None:
    """To be called first in a child: it ignores Ctrl-C, and ends when its parent does, however that ends.

    Raises EnvironmentFailure when the system allows no thread for that.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "win32":
        signal.signal(signal.SIGBREAK, signal.SIG_IGN)  # Ctrl-Break goes to all of a console, too
    try:
        threading.Thread(target=end_with_parent, daemon=True).start()
    except RuntimeError as error:
        raise EnvironmentFailure(f"{error}. Close other programs") from error


_last_acts: list[Callable[[], None]] = []


def when_orphaned(act: Callable[[], None]) -> None:
    """Have something done before this process ends because its parent did: on another thread, at once."""
    _last_acts.append(act)


def end_with_parent() -> None:
    """Wait until the process that started this one has ended, and end too."""
    # daemon=True does not survive the parent's SIGKILL; its sentinel does.
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel, *LIFELINES])
        for act in _last_acts:
            with suppress(Exception):
                act()
        os._exit(1)
