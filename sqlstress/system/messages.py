"""Messages of our processes, sent in pieces: nobody who receives one waits for what has not been sent.

A process can be stopped or killed in the midst of a long message. A piece is short enough for the pipes of
every system to take it whole or not at all, so that its rest is there when its beginning is.
"""

from __future__ import annotations

import pickle
import sys
from multiprocessing import connection
from typing import Any

if sys.platform == "win32":
    Pipe = connection.PipeConnection
else:
    Pipe = connection.Connection

PIECE = 2000
"""Bytes: with what multiprocessing adds, fewer than the 2,048 for which macOS makes room before it takes any.
Linux takes whole what is smaller than half a socket's buffer, Windows every message."""
MORE, LAST = b"+", b"."
"""How a piece begins."""


def send(pipe: Pipe, message: Any) -> None:
    """Send a message. Raises OSError when nobody receives it any more."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    for start in range(0, len(data), PIECE):
        end = start + PIECE
        pipe.send_bytes((MORE if end < len(data) else LAST) + data[start:end])


class Inbox:
    """Where one message after the other comes in."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._pieces: list[bytes] = []

    def receive(self) -> Any:
        """Return a message, or None when there is no more of it by now. Never waits.

        Raises EOFError or OSError when nobody sends any more.
        """
        while self._pipe.poll():
            piece = self._pipe.recv_bytes()
            self._pieces.append(piece[1:])
            if piece[:1] == LAST:
                data = b"".join(self._pieces)
                self._pieces.clear()
                return pickle.loads(data)
        return None
