"""Listener: reports each SQL statement of a sqlite3 connection before it runs, by SQLite's trace callback.

The trace callback can deadlock if several threads use the connection at the same time. So a listener removes
the callback (the trace ends) in time:

- without `ConnectionUses`, as soon as a second thread could use the connection
- with `ConnectionUses`, only before two threads use the connection at the same time

`ConnectionUses` sees all calls of the connection, by a profile function. Python calls this function at each
call and return, so it is too slow for a measurement.
"""

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

from sqlstress.recording.threads import (
    WRAPPER_CODES,
    any_continues,
    has_other_threads,
    on_thread_start,
    other_threads,
    other_threads_running,
)


def call_soon(call: Callable[[], None]) -> None:
    """Call `call` when this thread next calls a function or returns from one, by a profile function."""
    previous = sys.getprofile()
    if previous is not None and not callable(previous):
        return  # An active profiler written in C could not be restored.

    def profile(_frame: FrameType, _event: str, _arg: Any) -> None:
        _set_profile(previous)
        with suppress(sqlite3.Error):  # A closed or busy connection stays untraced.
            call()

    _set_profile(profile)


def _set_profile(profile: Any) -> None:
    # Python raises a RuntimeError if two threads set a profile function at the same moment.
    for _ in range(_TRIES):
        with suppress(RuntimeError):
            sys.setprofile(profile)
            return
        time.sleep(0)


_TRIES = 1000


class ConnectionUses:
    """Observer of all calls of sqlite3 connections in this process, by a profile function per thread.

    The observer calls the connection's `Listener` before and after each call of a method, such as `execute`.
    So the listener can remove its trace callback before two threads use the connection at the same time.
    """

    def __init__(self) -> None:
        self._listeners: WeakValueDictionary[int, Listener] = WeakValueDictionary()
        """Listener of each connection, by `id()` of the connection."""
        self._earlier: set[int] = set()
        """Ids of the threads that already ran at `start`. Python cannot set their profile function."""

    def start(self) -> None:
        """Observe the calls of this thread and of threads that the threading module starts later."""
        self._earlier = other_threads()
        bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        def begin(thread: threading.Thread) -> None:
            _set_profile(self._profile)
            bootstrap(thread)

        WRAPPER_CODES.add(begin.__code__)
        # threading.setprofile is not used. It does not retry if two threads set a profile function at the
        # same moment: the RuntimeError would end the new thread.
        threading.Thread._bootstrap_inner = begin  # type: ignore[attr-defined]
        _set_profile(self._profile)

    def add(self, connection: sqlite3.Connection, listener: Listener) -> None:
        self._listeners[id(connection)] = listener

    def has_unobserved_thread(self) -> bool:
        """Return whether a running thread lacks our profile function, so that its calls are not observed."""
        # The call of other_threads() must be before the call of threading.enumerate(). A thread that starts
        # between the two calls is then only in the second result, and does not count as unobserved.
        thread_ids = other_threads()
        unobserved = thread_ids - ({thread.ident for thread in threading.enumerate()} - self._earlier)
        return bool(unobserved) and other_threads_running(unobserved)

    def _profile(self, _frame: FrameType, event: str, arg: Any) -> None:
        if not event.startswith("c_"):
            return
        target: Any = getattr(arg, "__self__", None)
        kind = type(target)
        if issubclass(kind, sqlite3.Cursor):
            with suppress(Exception):  # The user's subclass of Cursor did not call __init__.
                target = target.connection
        elif not issubclass(kind, sqlite3.Connection):
            return
        if listener := self._listeners.get(id(target)):
            # An error here would reach the user's code, and remove the profile function.
            with suppress(Exception):
                listener.enter() if event == "c_call" else listener.exit()


class Listener:
    """Trace callback of a connection, which passes each statement before it runs to the function `begins`.

    Two threads that use the connection could deadlock. SQLite calls the trace callback while it holds the
    connection's mutex, and the callback needs the GIL. Another thread may hold the GIL while it waits for the
    mutex, for example when the sqlite3 module binds a value. So the listener removes the callback (the trace
    ends) before several threads use the connection.
    """

    _open: ClassVar[WeakSet[Listener]] = WeakSet()
    """Listeners whose trace has not ended. A connection keeps its listener alive."""
    _PATIENCE_S, _LOOK_S, _UNDISTURBED_S = 10.0, 0.001, 0.5

    def __init__(
        self,
        connection: sqlite3.Connection,
        begins: Callable[[str], object],
        ends: Callable[[], object] = bool,
        uses: ConnectionUses | None = None,
    ) -> None:
        """Start the trace, unless other running threads may already use the connection.

        - begins: function that is called with each statement, and returns False to end the trace
        - ends: function that is called if the trace ends because of a second thread
        - uses: observer of the calls of all threads. With an observer, the trace ends only before two threads
          use the connection at the same time; without, as soon as a second thread could use it.
        """
        self._connection, self._begins, self._ends = connection, begins, ends
        self._is_over = False
        """Whether the trace must end at the next statement, because several threads use the connection."""
        self._is_shared: bool | None = None
        """Whether sqlite3 lets other threads use the connection; None before `_check_sharing`."""
        self._uses = uses
        self._user_threads = {threading.get_ident()}
        """Ids of the threads that called a method of the connection."""
        self._within: Counter[int] = Counter()
        """Number of running (nested) calls of the connection's methods, by thread."""
        self._entry = threading.Lock()
        """Lock of `enter`, so that two threads do not enter a call of the connection at the same time."""
        if uses:
            uses.add(connection, self)
        else:
            on_thread_start(self._on_thread_start)
        if not uses and has_other_threads():
            self._check_sharing()
            if self._is_shared and other_threads_running():
                ends()
                return
        self._open.add(self)
        connection.set_trace_callback(self._trace)

    def _check_sharing(self) -> None:
        if self._is_shared is None:
            self._is_shared = _is_shareable(self._connection)

    def _trace(self, sql: str) -> None:
        # SQLite calls the callback within a call of the connection, such as `execute`, by this thread.
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
            return bool(self._is_shared) and other_threads_running()
        if not self._uses.has_unobserved_thread():
            return False
        self._check_sharing()
        return bool(self._is_shared)

    # `ConnectionUses` calls `enter` before each call of a method of the connection, and `exit` after it.

    def enter(self) -> None:
        """Note that this thread calls the connection. End the trace if another thread may be in a call."""
        thread = threading.get_ident()
        if self._within[thread]:
            self._within[thread] += 1
            return  # A nested call: by our trace, or by a function of the user that SQLite calls.
        with self._entry:
            if thread not in self._user_threads and not self._accepts_this_thread():
                return  # sqlite3 will refuse this thread's call.
            self._user_threads.add(thread)
            other_user_threads = self._user_threads - {thread}
            # `for row in cursor` calls SQLite without a profile event. So each thread that has used the
            # connection may be in such a loop now. Only a thread that waits for other threads is not in
            # SQLite: `any_continues` ignores waiting threads.
            if any(self._within[other] for other in other_user_threads) or (
                other_user_threads and any_continues(other_user_threads)
            ):
                self._is_over = True
            if self._is_over:
                self._leave_when_free(other_user_threads)
            self._within[thread] += 1

    def exit(self) -> None:
        """Note that this thread's call of the connection has returned."""
        thread = threading.get_ident()
        self._within[thread] = max(self._within[thread] - 1, 0)

    def _accepts_this_thread(self) -> bool:
        try:
            sqlite3.Connection.cursor(self._connection)
        except sqlite3.ProgrammingError:
            return False
        return True

    def _leave_when_free(self, other_user_threads: set[int]) -> None:
        """Wait until no thread in `other_user_threads` is in a call of the connection, and end the trace.

        The wait ends after 10 s (_PATIENCE_S) at the latest. The trace then ends only at the connection's
        next statement. Until then the threads may deadlock.
        """
        # The wait is necessary even if another thread has already ended the trace in its trace callback: that
        # callback needs the GIL until it returns. If this thread called SQLite now, this thread could hold
        # the GIL while it waits for the connection's mutex.
        deadline = time.monotonic() + self._PATIENCE_S
        while any(self._within[other] for other in other_user_threads) or _may_roll_back(other_user_threads):
            if time.monotonic() > deadline:
                return
            time.sleep(self._LOOK_S)
        if self in self._open:
            with suppress(sqlite3.Error):  # The connection was closed.
                self._leave()

    def _leave(self) -> None:
        self._stop()
        self._ends()

    def _stop(self) -> None:
        self._open.discard(self)
        self._connection.set_trace_callback(None)

    @classmethod
    def _on_thread_start(cls, at_once: bool) -> None:
        """End the traces of connections that any thread may use, because a new thread is about to start.

        Such connections have check_same_thread=False. `at_once` is whether the current thread may continue
        while the new thread runs. If `at_once` is False, the current thread only waits for the new thread, as
        with asyncio.to_thread. So the threads cannot deadlock, and no trace ends.
        """
        for listener in [*cls._open]:
            listener._check_sharing()
        ending = [listener for listener in cls._open if listener._is_shared] if at_once else []
        for listener in ending:
            listener._is_over = True
        if ending:
            cls._end(ending)

    @classmethod
    def _end(cls, ending: list[Listener]) -> None:
        """End the traces of the listeners `ending` at a moment when no other thread is running.

        The wait for this moment ends after 10 s (_PATIENCE_S) at the latest. Each trace then ends only at its
        connection's next statement. Until then the threads may deadlock.
        """
        deadline, usual_s = time.monotonic() + cls._PATIENCE_S, sys.getswitchinterval()
        # With a long switch interval, Python does not switch to another thread between the check
        # `other_threads_running` and the end of the traces.
        sys.setswitchinterval(cls._UNDISTURBED_S)
        try:
            while remaining := cls._open.intersection(ending):
                time.sleep(cls._LOOK_S)
                if not other_threads_running():
                    for listener in remaining:
                        with suppress(sqlite3.Error):  # The connection was closed.
                            listener._leave()
                if time.monotonic() > deadline:
                    break
        finally:
            sys.setswitchinterval(usual_s)


def _may_roll_back(threads: set[int]) -> bool:
    """Return whether a thread may be in the ROLLBACK at the end of a `with connection:` block.

    The sqlite3 module runs this ROLLBACK if the block raises an error.
    """
    # Python reports no profile event for this ROLLBACK, so examine the threads' call stacks.
    frames = sys._current_frames()
    return any(thread in frames and _is_in_rollback(frames[thread]) for thread in threads)


def _is_in_rollback(frame: FrameType | None) -> bool:
    while frame:
        if dis.opname[frame.f_code.co_code[frame.f_lasti]] == "WITH_EXCEPT_START":
            return True
        frame = frame.f_back
    return False


def _is_shareable(connection: sqlite3.Connection) -> bool:
    """Return whether sqlite3 lets other threads use a connection; test this in a new thread."""
    cursors: list[sqlite3.Cursor] = []
    finished = threading.Event()

    def use() -> None:
        with suppress(sqlite3.ProgrammingError):
            cursors.append(sqlite3.Connection.cursor(connection))
        finished.set()

    # Not a threading.Thread, because the user's code may keep track of all such threads.
    _thread.start_new_thread(use, ())
    finished.wait()
    return bool(cursors)
