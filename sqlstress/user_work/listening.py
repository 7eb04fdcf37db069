"""A connection's statements, told before they run, whoever has opened it."""

from __future__ import annotations

import _thread
import dis
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, ClassVar
from weakref import WeakSet, WeakValueDictionary

from sqlstress.user_work.threads import (
    PASSED,
    goes_on,
    has_others,
    other_threads,
    tell_of_threads,
    works_beside,
)


def next_moment(call: Callable[[], None]) -> None:
    """Call a function when the next thing happens in this thread."""
    before = sys.getprofile()
    if before is not None and not callable(before):
        return  # a profiler in C, which can't be put back

    def profile(_frame: FrameType, _event: str, _arg: Any) -> None:
        _set_profile(before)
        with suppress(sqlite3.Error):  # it was closed meanwhile, or is busy: then nothing is known of it
            call()

    _set_profile(profile)


def _set_profile(profile: Any) -> None:
    """Set a thread's profile function. Python refuses it while another thread sets its function."""
    for _ in range(_TRIES):
        with suppress(RuntimeError):
            sys.setprofile(profile)
            return
        time.sleep(0)


_TRIES = 1000


class Uses:
    """The calls of connections by the threads of this process, of which a profile function hears first.

    So the first thread's trace can end before a second thread reaches SQLite. It costs time at each call of
    any function, so it is no part of a measurement.
    """

    def __init__(self) -> None:
        self._listeners: WeakValueDictionary[int, Listener] = WeakValueDictionary()
        """Listeners by the number of their connection, which keeps them alive."""
        self._earlier: set[int] = set()
        """Threads that were there before: their calls are not heard."""

    def start(self) -> None:
        """Follow the calls of this thread, and of threads that the threading module starts later."""
        self._earlier = other_threads()
        bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        def begin(thread: threading.Thread) -> None:
            _set_profile(self._profile)
            bootstrap(thread)

        PASSED.add(begin.__code__)
        # Not threading.setprofile, with which a thread dies when Python refuses its function.
        threading.Thread._bootstrap_inner = begin  # type: ignore[attr-defined]
        _set_profile(self._profile)

    def add(self, connection: sqlite3.Connection, listener: Listener) -> None:
        self._listeners[id(connection)] = listener

    def works_unheard(self) -> bool:
        """Return whether a thread is at work whose calls are not heard."""
        # First the threads: one that starts between the two looks is heard.
        others = other_threads()
        unheard = others - ({thread.ident for thread in threading.enumerate()} - self._earlier)
        return bool(unheard) and works_beside(unheard)

    def _profile(self, _frame: FrameType, event: str, arg: Any) -> None:
        if not event.startswith("c_"):
            return
        target: Any = getattr(arg, "__self__", None)
        kind = type(target)
        if issubclass(kind, sqlite3.Cursor):
            with suppress(Exception):  # a subclass has not called __init__
                target = target.connection
        elif not issubclass(kind, sqlite3.Connection):
            return
        if listener := self._listeners.get(id(target)):
            # An error here would be the user's, and end the profile.
            with suppress(Exception):
                listener.enter() if event == "c_call" else listener.exit()


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
        uses: Uses | None = None,
    ) -> None:
        """`begins` hears of a statement, and returns False to hear no more; `ends` hears of threads.

        With `uses` it ends only if threads do use the connection at once, not already if they may.
        """
        self._connection, self._begins, self._ends = connection, begins, ends
        self._is_over = False
        """Whether it is to end because of threads."""
        self._is_for_all: bool | None = None
        """Whether other threads may use it; None: there was none yet."""
        self._uses = uses
        self._users = {threading.get_ident()}
        """Threads that have used the connection."""
        self._within: Counter[int] = Counter()
        """By thread, the calls of the connection that are under way."""
        self._entry = threading.Lock()
        """Held by the thread that decides whether it may call the connection."""
        if uses:
            uses.add(connection, self)
        else:
            tell_of_threads(self._threads)
        if not uses and has_others():
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
        thread = threading.get_ident()
        self._within[thread] += 1
        try:
            if self._is_over or self._is_in_danger():
                self._leave()
            elif self._begins(sql) is False:
                self._stop()
        finally:
            self._within[thread] -= 1

    def _is_in_danger(self) -> bool:
        if not self._uses:
            return bool(self._is_for_all) and works_beside()
        if not self._uses.works_unheard():
            return False
        self._learn()
        return bool(self._is_for_all)

    # What a thread does before and after each call of the connection.

    def enter(self) -> None:
        """Prepare a call of the connection by this thread: end first if threads use it at once."""
        thread = threading.get_ident()
        if self._within[thread]:
            self._within[thread] += 1  # our trace, or the user's function, calls it within a call
            return
        with self._entry:
            if thread not in self._users and not self._takes_this_thread():
                return  # sqlite3 will refuse the call
            self._users.add(thread)
            others = self._users - {thread}
            # A thread that sleeps in a loop over rows fetches the next row unheard.
            if any(self._within[other] for other in others) or (others and goes_on(others)):
                self._is_over = True
            if self._is_over:
                self._leave_alone(others)
            self._within[thread] += 1

    def exit(self) -> None:
        """Note the end of a call of the connection by this thread."""
        thread = threading.get_ident()
        self._within[thread] = max(self._within[thread] - 1, 0)

    def _takes_this_thread(self) -> bool:
        try:
            sqlite3.Connection.cursor(self._connection)
        except sqlite3.ProgrammingError:
            return False
        return True

    def _leave_alone(self, others: set[int]) -> None:
        """Leave when no other thread is within the connection.

        A thread within it may leave by itself. Its trace needs Python's lock to the end, so wait for it, too.
        """
        until = time.monotonic() + self._PATIENCE_S
        while any(self._within[other] for other in others) or _may_roll_back(others):
            if time.monotonic() > until:
                return
            time.sleep(self._LOOK_S)
        if self in self._open:
            with suppress(sqlite3.Error):  # it was closed
                self._leave()

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


def _may_roll_back(threads: set[int]) -> bool:
    """Return whether threads may be in the ROLLBACK of a `with`, of which no profile function hears."""
    frames = sys._current_frames()
    return any(thread in frames and _is_in_rollback(frames[thread]) for thread in threads)


def _is_in_rollback(frame: FrameType | None) -> bool:
    while frame:
        if dis.opname[frame.f_code.co_code[frame.f_lasti]] == "WITH_EXCEPT_START":
            return True
        frame = frame.f_back
    return False


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
