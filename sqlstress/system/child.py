"""Functions of a child process: it sends messages to its parent, and ends when its parent ends.

A process can be stopped or killed during a long message, so messages are sent in pieces: the receiver never
waits for a piece that has not been sent. A piece is so short that the pipes of every system accept it whole
or not at all, so that the receiver never finds a part of a piece.
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
"""Length of a piece, in bytes. With multiprocessing's header it is below the 2,048 that macOS accepts whole.

Linux accepts whole a piece that is smaller than half a socket's buffer; Windows accepts every message whole.
"""
MORE, LAST = b"+", b"."
"""First byte of a piece: whether more pieces of the message follow."""
LIFELINES: list[int] = []
"""Descriptors that become readable when this process must end, such as the fork server's lifeline."""


def send(pipe: Pipe, message: Any) -> None:
    """Send a message. Raises OSError if the receiver has closed the pipe."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    for start in range(0, len(data), PIECE):
        end = start + PIECE
        pipe.send_bytes((MORE if end < len(data) else LAST) + data[start:end])


def init_child() -> None:
    """Prepare a child process: it ignores Ctrl-C, and ends when its parent ends for any reason.

    Call it before anything else. Raises EnvironmentFailure if the system allows no thread for this.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "win32":
        signal.signal(signal.SIGBREAK, signal.SIG_IGN)  # a console sends Ctrl-Break to all its processes
    try:
        threading.Thread(target=end_with_parent, daemon=True).start()
    except RuntimeError as error:
        raise EnvironmentFailure(f"{error}. Close other programs") from error


_final_calls: list[Callable[[], None]] = []


def on_parent_end(act: Callable[[], None]) -> None:
    """Register a function to call, in another thread, before this process ends because its parent ended."""
    _final_calls.append(act)


def end_with_parent() -> None:
    """Wait until the parent process has ended, then end this process."""
    # daemon=True does not survive the parent's SIGKILL; its sentinel does.
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel, *LIFELINES])
        for act in _final_calls:
            with suppress(Exception):
                act()
        os._exit(1)
