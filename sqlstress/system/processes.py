"""Processes of our own: spawned, never struck by a Ctrl-C that is the parent's to answer.

A child forked from us would share our connections to SQLite, and our locks.
"""

from __future__ import annotations

import gc
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from multiprocessing import Pipe as open_pipe
from multiprocessing import connection, get_context, resource_tracker
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, ParamSpec, Protocol, Self, TypeVar, cast

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.child import LAST, Pipe, begin_child, send
from sqlstress.system.interrupt import Pulse

P = ParamSpec("P")
T = TypeVar("T")

TICK_S = 0.1
GRACE_S = 2.0
GROUP = 60
"""So many pipes are waited for at once: Windows waits for at most 63 things."""


class Died(EnvironmentFailure):
    """A process ended without an answer."""


class Inbox:
    """Where one message after the other comes in."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._pieces: list[bytes] = []

    def receive(self) -> Any:
        """Return a message, or None when there is no more of it by now. Never waits.

        Raises EOFError or OSError when nobody sends any more.
        """
        while wait_some([self._pipe], 0.0):
            piece = self._pipe.recv_bytes()
            self._pieces.append(piece[1:])
            if piece[:1] == LAST:
                data = b"".join(self._pieces)
                self._pieces.clear()
                return pickle.loads(data)
        return None


def wait_some(pipes: Sequence[Pipe], timeout_s: float) -> list[Pipe]:
    """Return the pipes that have something to read, waiting at most about `timeout_s` for any."""
    groups = [pipes[start : start + GROUP] for start in range(0, len(pipes), GROUP)]
    try:
        return [pipe for group in groups for pipe in connection.wait(group, timeout_s / len(groups))]  # type: ignore[misc]
    except InterruptedError:
        return []  # on Windows Ctrl-C ends the main thread's wait, though a handler has heard it


class Starter(Protocol):
    """Starts processes."""

    def start(self, main: Callable[..., None], args: tuple[Any, ...]) -> BaseProcess:
        """Start a process that calls a function of a module. Raises OSError."""


class Spawning:
    """Starts each process by running Python anew."""

    def start(self, main: Callable[..., None], args: tuple[Any, ...]) -> BaseProcess:
        process = get_context("spawn").Process(target=main, args=args, daemon=True)
        start(process)
        return process


SPAWNING = Spawning()


_STARTER: ContextVar[Starter] = ContextVar("starter", default=SPAWNING)
"""What starts a process that calls functions for us."""


@contextmanager
def starting(modules: Sequence[str]) -> Iterator[Starter]:
    """Yield what starts processes that need these modules: they are forked by one that has imported them.

    They are spawned where there are none, on Windows, and where this Python's multiprocessing is not the one
    that `forkserver` knows. Those that call functions for us are started the same way while the block lasts.
    """
    before = _STARTER.get()
    with _starter(modules) as starter:
        _STARTER.set(starter)
        try:
            yield starter
        finally:
            _STARTER.set(before)


def _starter(modules: Sequence[str]) -> AbstractContextManager[Starter]:
    if modules and sys.platform != "win32":
        with suppress(ImportError, AttributeError):  # of what multiprocessing keeps to itself
            from sqlstress.system import forkserver

            if forkserver.is_possible():
                return forkserver.ForkServer(modules)
    return nullcontext(SPAWNING)


def start(process: BaseProcess) -> None:
    """Start a process that no Ctrl-C can reach while it is importing. Raises OSError."""
    if sys.platform != "win32":
        # Otherwise the first start would do it, and let SIGINT through while it does. A closed terminal
        # would end it before us, and multiprocessing complain of that.
        with held_back("SIGHUP"):
            resource_tracker.ensure_running()
    # The main module is left out, which may be a user's script: it would run once more in each process, and
    # they need nothing of it.
    main = sys.modules["__main__"]
    with held_back("SIGINT"):
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            process.start()
        finally:
            sys.modules["__main__"] = main


@contextmanager
def held_back(name: str) -> Iterator[None]:
    """Hold back a signal for this thread, and for good for the processes started meanwhile (not on Windows).

    A child that is still importing would otherwise answer Ctrl-C with a traceback of its own.
    """
    if sys.platform == "win32":
        yield
    else:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.Signals[name]})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def death(exitcode: int | None) -> str:
    """Say how a process ended that sent no result."""
    if exitcode is None:
        return "closed its pipe without a result"
    if exitcode >= 0:
        return f"ended with exit code {exitcode} and no result"
    try:
        return f"was killed by {signal.Signals(-exitcode).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-exitcode}"


class Apart:
    """A process of its own that calls functions of modules for us, one after the other.

    It is started by the first call, and ended with the block; one that has died is started anew.
    """

    def __init__(self, name: str = "a process of sqlstress") -> None:
        """`name` is what it is called in an error."""
        self._name = name
        self._process: BaseProcess | None = None
        self._pipe: Pipe
        self._inbox: Inbox

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def call(self, pulse: Pulse, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a function returns. Raises what it raises, or what `begin` and `result` do."""
        self.begin(function, *args, **kwargs)
        return cast(T, self.result(pulse))

    def begin(self, function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
        """Have a function called. Raises EnvironmentFailure when the process can't start."""
        if self._process is None:
            self._start()
        with suppress(OSError):  # it has died: the result says so
            self._pipe.send((function, args, kwargs))

    def has_answered(self) -> bool:
        """Return whether `result` need not wait for long."""
        return bool(wait_some([self._pipe], 0.0))

    def result(self, pulse: Pulse) -> Any:
        """Return what the function returns that was begun.

        Raises what it raises, or Died. Calls `pulse` often; when that raises, the process is ended.
        """
        try:
            pulse()
            while (answer := self._inbox.receive()) is None:
                wait_some([self._pipe], TICK_S)
                pulse()
        except (EOFError, ConnectionError) as error:
            assert self._process
            self._process.join(GRACE_S)
            how = death(self._process.exitcode)
            self.end()
            raise Died(f"{self._name} {how}. Try again.") from error
        except BaseException:
            self.end()
            raise
        result, problem = answer
        if problem is not None:
            raise problem
        return result

    def _start(self) -> None:
        self._pipe, theirs = open_pipe()
        self._inbox = Inbox(self._pipe)
        with theirs:
            try:
                process = _STARTER.get().start(_answer, (theirs,))
                process.pid  # noqa: B018 - raises where it could not be forked
            except OSError as error:
                self._pipe.close()
                raise EnvironmentFailure(
                    f"cannot start a process: {error.strerror}. Close other programs."
                ) from error
        self._process = process

    def end(self) -> None:
        """Leave no process behind."""
        if self._process:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None


def call_apart(pulse: Pulse, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function of a module returns, called in a process of its own.

    Raises what the function raises, or EnvironmentFailure when the process can't start or dies. Calls
    `pulse` often; when that raises, the process is ended.
    """
    with Apart() as apart:
        return apart.call(pulse, function, *args, **kwargs)


def _answer(pipe: Pipe) -> None:
    """Call what is asked for, until nobody asks any more."""
    gc.enable()  # who forks processes has disabled it
    try:
        begin_child()
        while True:
            function, args, kwargs = pipe.recv()
            try:
                send(pipe, (function(*args, **kwargs), None))
            except Exception as error:
                send(pipe, (None, error))
    except (EOFError, ConnectionError):
        return
    except EnvironmentFailure as error:
        send(pipe, (None, error))
