"""Functions of a child process: it sends messages to its parent, and ends when its parent ends.

A process can be killed while it sends a message. So it sends messages in pieces that pipes accept whole or
not at all, and the receiver never waits for the rest of a piece.
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
"""Length of a piece of a message, in bytes; below 2,048 bytes with multiprocessing's header.

macOS accepts whole writes of up to 2,048 bytes, Linux of half a socket's buffer, Windows every message.
"""
MORE, LAST = b"+", b"."
"""First byte of a piece: MORE if further pieces of the same message follow, else LAST."""
LIFELINES: list[int] = []
"""File descriptors that become readable when this process must end."""


def send(pipe: Pipe, message: Any) -> None:
    """Send a message to the parent. Raises OSError if the receiver has closed the pipe."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    for start in range(0, len(data), PIECE):
        end = start + PIECE
        pipe.send_bytes((MORE if end < len(data) else LAST) + data[start:end])


def init_child() -> None:
    """Prepare a child process to ignore Ctrl-C, and to end when its parent has ended for any reason.

    Call it before anything else. Raises EnvironmentFailure if the system allows no thread for this.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "win32":
        signal.signal(signal.SIGBREAK, signal.SIG_IGN)  # A console sends Ctrl-Break to all of its processes.
    try:
        threading.Thread(target=end_with_parent, daemon=True).start()
    except RuntimeError as error:
        raise EnvironmentFailure(f"{error}. Close other programs") from error


_final_calls: list[Callable[[], None]] = []


def on_parent_end(act: Callable[[], None]) -> None:
    """Register a function to call if the parent dies, on another thread, before this process exits."""
    _final_calls.append(act)


def end_with_parent() -> None:
    """Wait until the parent process has ended; end this process with exit code 1."""
    # daemon=True does not end this process if the parent is killed.
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel, *LIFELINES])
        for act in _final_calls:
            with suppress(Exception):
                act()
        os._exit(1)
