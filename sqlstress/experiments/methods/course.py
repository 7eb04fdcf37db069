"""The course of one operation: until when it may go on, and how far it has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Event, Thread
from typing import Any, TypeVar

from sqlstress.targets.sqlite.drivers import Connection

T = TypeVar("T")

INTERRUPT_EVERY_S = 0.01
"""An interrupt that meets no running statement does nothing, so it is repeated."""


class TimedOut(Exception):
    """The operation was stopped between two statements."""


class Course:
    """Stops an operation after its time-out, wherever it is by then."""

    def __init__(self, connection: Connection, timeout_s: float, told: Any) -> None:
        """`told` is one shared word: the rows that the worker knows to be written."""
        self.late = False
        self._connection, self._timeout_s, self._told = connection, timeout_s, told
        self._over = Event()
        self._watch = Thread(target=self._stop_when_late, daemon=True)

    def begin(self) -> None:
        """The operation begins now."""
        self._watch.start()

    def _stop_when_late(self) -> None:
        if self._over.wait(self._timeout_s):
            return
        self.late = True
        while not self._over.wait(INTERRUPT_EVERY_S):
            self._connection.interrupt()

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, each when the one before it has been written; raises TimedOut."""
        told = 0
        for item in items:
            self._told[0] = told
            if self.late:
                raise TimedOut
            yield item
            told += 1
        self._told[0] = told

    def end(self) -> None:
        """The operation has ended: nothing is interrupted any more."""
        self._over.set()
        self._watch.join()
