"""Functions of a child process: it sends messages to its parent, and ends when its parent ends.

A process can be killed while it sends a message. So it sends a message in pieces that a pipe accepts whole or
not at all, and the parent never waits for the rest of a piece.
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
"""Maximum length of a piece of a message, in bytes. With multiprocessing's header, it is below 2,048 bytes.

Systems accept a write whole up to a limit: 2,048 bytes on macOS, half the socket's buffer on Linux. Windows
accepts every message whole.
"""
MORE, LAST = b"+", b"."
"""First byte of a piece: MORE if further pieces of the same message follow, else LAST."""
LIFELINES: list[int] = []
"""File descriptors that become readable when this process must end, because its fork server has ended."""


def send(pipe: Pipe, message: Any) -> None:
    """Send a message to the parent. Raises OSError if the receiver has closed the pipe."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    for start in range(0, len(data), PIECE):
        end = start + PIECE
        pipe.send_bytes((MORE if end < len(data) else LAST) + data[start:end])


def init_child() -> None:
    """Let this child process ignore Ctrl-C, and end when its parent has ended for any reason.

    Call it before anything else. Raises EnvironmentFailure if the system refuses a thread.
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
    """Register a function to call when the parent has ended, before this process exits.

    It is called on another thread than the main thread.
    """
    _final_calls.append(act)


def end_with_parent() -> None:
    """Wait until the parent process has ended; end this process with exit code 1."""
    # The flag `daemon` of multiprocessing does not end this process if the parent is killed.
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel, *LIFELINES])
        for act in _final_calls:
            with suppress(Exception):
                act()
        os._exit(1)
