"""A connection's statements, told before they run, whoever has opened it."""

from __future__ import annotations

import _thread
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, ClassVar
from weakref import WeakSet

from sqlstress.user_work.threads import has_others, tell_of_threads, works_beside


def next_moment(call: Callable[[], None]) -> None:
    """Call a function when the next thing happens in this thread."""
    before = sys.getprofile()
    if before is not None and not callable(before):
        return  # a profiler in C, which can't be put back

    def profile(_frame: FrameType, _event: str, _arg: Any) -> None:
        sys.setprofile(before)
        with suppress(sqlite3.Error):  # it was closed meanwhile, or is busy: then nothing is known of it
            call()

    sys.setprofile(profile)


class Listener:
    """Tells of each statement of a connection before it runs, until it is told that this is enough.

    It ends too once several threads at work may use the connection. A trace waits for Python's lock while
    SQLite holds the connection's mutex, and whoever has that lock may wait for the mutex: sqlite3 does where
    it binds a value. Both would stand still for good.
    """

    _open: ClassVar[WeakSet[Listener]] = WeakSet()
    """All there are: a connection keeps its own alive."""
    _PATIENCE_S, _LOOK_S, _UNDISTURBED_S = 10.0, 0.001, 0.5

    def __init__(
        self,
        connection: sqlite3.Connection,
        begins: Callable[[str], object],
        ends: Callable[[], object] = bool,
    ) -> None:
        """`begins` hears of a statement, and returns False to hear no more; `ends` hears of threads."""
        self._connection, self._begins, self._ends = connection, begins, ends
        self._is_over = False
        """Whether it is to end because of threads."""
        self._is_for_all: bool | None = None
        """Whether other threads may use it; None: there was none yet."""
        tell_of_threads(self._threads)
        if has_others():
            self._learn()
            if self._is_for_all and works_beside():
                ends()
                return
        self._open.add(self)
        connection.set_trace_callback(self._trace)

    def _learn(self) -> None:
        if self._is_for_all is None:
            self._is_for_all = _takes_other_threads(self._connection)

    def _trace(self, sql: str) -> None:
        # Here, within its own call, SQLite has the mutex already.
        if self._is_over or (self._is_for_all and works_beside()):
            self._leave()
        elif self._begins(sql) is False:
            self._stop()

    def _leave(self) -> None:
        """End because of threads."""
        self._stop()
        self._ends()

    def _stop(self) -> None:
        self._open.discard(self)
        self._connection.set_trace_callback(None)

    @classmethod
    def _threads(cls, at_once: bool) -> None:
        """Take that a thread is about to begin; `at_once`: it may be at work while another one is."""
        for one in [*cls._open]:
            one._learn()
        ending = [one for one in cls._open if one._is_for_all] if at_once else []
        for one in ending:
            one._is_over = True
        if ending:
            cls._end(ending)

    @classmethod
    def _end(cls, ending: list[Listener]) -> None:
        """End them where no other thread is at work: one may be within SQLite, and ends them itself then."""
        until, usual_s = time.monotonic() + cls._PATIENCE_S, sys.getswitchinterval()
        # No thread may begin to work between a look and what follows from it.
        sys.setswitchinterval(cls._UNDISTURBED_S)
        try:
            while left := cls._open.intersection(ending):
                time.sleep(cls._LOOK_S)
                if not works_beside():
                    for one in left:
                        with suppress(sqlite3.Error):  # it was closed
                            one._leave()
                if time.monotonic() > until:
                    break
        finally:
            sys.setswitchinterval(usual_s)


def _takes_other_threads(connection: sqlite3.Connection) -> bool:
    """Return whether another thread may use a connection (check_same_thread=False): one tries it."""
    found: list[sqlite3.Cursor] = []
    over = threading.Event()

    def use() -> None:
        with suppress(sqlite3.ProgrammingError):
            found.append(sqlite3.Connection.cursor(connection))
        over.set()

    # Not a Thread: of these the user's code may keep account.
    _thread.start_new_thread(use, ())
    over.wait()
    return bool(found)
