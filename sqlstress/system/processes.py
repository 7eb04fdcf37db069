"""Child processes that Ctrl-C does not reach, because the parent handles it.

They are not forked from this process: a forked child would share our connections to SQLite and our locks.
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
from typing import Any, ParamSpec, Self, TypeVar, cast

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.child import LAST, Pipe, init_child, send
from sqlstress.system.interrupt import Pulse

P = ParamSpec("P")
T = TypeVar("T")

TICK_S = 0.1
GRACE_S = 2.0
MAX_PIPES = 60
"""Maximum number of pipes in one wait: Windows waits for at most 63 objects."""


class Died(EnvironmentFailure):
    """A process ended without an answer."""


class Inbox:
    """Receiver of the messages that `child.send` has sent through a pipe."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._pieces: list[bytes] = []

    def receive(self) -> Any:
        """Return the next message, or None if it has not arrived yet. Does not wait.

        Raises EOFError or OSError if the pipe is closed.
        """
        while wait_readable([self._pipe], 0.0):
            piece = self._pipe.recv_bytes()
            self._pieces.append(piece[1:])
            if piece[:1] == LAST:
                data = b"".join(self._pieces)
                self._pieces.clear()
                return pickle.loads(data)
        return None


def wait_readable(pipes: Sequence[Pipe], timeout_s: float) -> list[Pipe]:
    """Wait up to about `timeout_s` seconds for a readable pipe; return the readable pipes, perhaps []."""
    groups = [pipes[start : start + MAX_PIPES] for start in range(0, len(pipes), MAX_PIPES)]
    try:
        return [pipe for group in groups for pipe in connection.wait(group, timeout_s / len(groups))]  # type: ignore[misc]
    except InterruptedError:
        return []  # On Windows Ctrl-C ends the wait of the main thread, although a handler has caught it.


class Starter:
    """Starter of processes. It spawns each process as a new Python interpreter; a subclass forks it."""

    def start(self, main: Callable[..., None], args: tuple[Any, ...]) -> BaseProcess:
        """Start a process that calls `main`, a function of a module, with `args`. Raises OSError."""
        process = get_context("spawn").Process(target=main, args=args, daemon=True)
        start(process)
        return process


SPAWNING = Starter()

_STARTER: ContextVar[Starter] = ContextVar("starter", default=SPAWNING)
"""Starter that ChildCaller uses."""


@contextmanager
def process_starter(modules: Sequence[str]) -> Iterator[Starter]:
    """Yield a starter of processes that need `modules`. Each ChildCaller inside the block uses it, too.

    The starter forks processes from a server that has imported `modules`. It spawns them if `modules` is
    empty, on Windows, and if our fork server does not support this Python.
    """
    previous = _STARTER.get()
    with _starter(modules) as starter:
        _STARTER.set(starter)
        try:
            yield starter
        finally:
            _STARTER.set(previous)


def _starter(modules: Sequence[str]) -> AbstractContextManager[Starter]:
    if modules and sys.platform != "win32":
        with suppress(ImportError, AttributeError):  # multiprocessing lacks undocumented parts
            from sqlstress.system import forkserver

            if forkserver.is_possible():
                return forkserver.ForkServer(modules)
    return nullcontext(SPAWNING)


def start(process: BaseProcess) -> None:
    """Start a process that Ctrl-C does not reach, even while it imports modules. Raises OSError."""
    if sys.platform != "win32":
        # Start multiprocessing's resource tracker now: its start unblocks SIGINT. SIGHUP must not end it.
        with blocked_signal("SIGHUP"):
            resource_tracker.ensure_running()
    # Hide the main module, which may be the user's script: each process would run the script again.
    main = sys.modules["__main__"]
    with blocked_signal("SIGINT"):
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            process.start()
        finally:
            sys.modules["__main__"] = main


@contextmanager
def blocked_signal(name: str) -> Iterator[None]:
    """Block a signal in this thread during the `with` block. Processes that it starts keep it blocked.

    Otherwise a child process that is still importing would print a traceback on Ctrl-C. No effect on Windows.
    """
    if sys.platform == "win32":
        yield
    else:
        previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.Signals[name]})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def exit_clause(exitcode: int | None) -> str:
    """Return a clause on the end of a process that sent no result, such as "was killed by SIGKILL"."""
    if exitcode is None:
        return "closed its pipe without a result"
    if exitcode >= 0:
        return f"ended with exit code {exitcode} and no result"
    try:
        return f"was killed by {signal.Signals(-exitcode).name}"
    except ValueError:  # A real-time signal has no name.
        return f"was killed by signal {-exitcode}"


class ChildCaller:
    """Caller of functions in a child process, one after the other. The first call starts the process."""

    def __init__(self, name: str = "a process of sqlstress") -> None:
        """`name` is the name of the child process in error messages."""
        self._name = name
        self._process: BaseProcess | None = None
        self._pipe: Pipe
        self._inbox: Inbox

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def call(self, pulse: Pulse, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the child process; return its result. Raises what `begin` and `result` raise."""
        self.begin(function, *args, **kwargs)
        return cast(T, self.result(pulse))

    def begin(self, function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
        """Begin a call of `function`. Raises EnvironmentFailure if the child process cannot start."""
        if self._process is None:
            self._start()
        with suppress(OSError):  # The process has died; `result` reports it.
            self._pipe.send((function, args, kwargs))

    def has_answered(self) -> bool:
        """Return whether a result or error has begun to arrive, so that `result` will return soon."""
        return bool(wait_readable([self._pipe], 0.0))

    def result(self, pulse: Pulse) -> Any:
        """Return the result of the call that `begin` started; call `pulse` often while waiting.

        Raises the function's exception, or Died if the child process has ended. An exception of `pulse` is
        raised after the end of the child process.
        """
        try:
            pulse()
            while (answer := self._inbox.receive()) is None:
                wait_readable([self._pipe], TICK_S)
                pulse()
        except (EOFError, ConnectionError) as error:
            assert self._process
            self._process.join(GRACE_S)
            how = exit_clause(self._process.exitcode)
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
        self._pipe, their_end = open_pipe()
        self._inbox = Inbox(self._pipe)
        with their_end:
            try:
                process = _STARTER.get().start(_answer_calls, (their_end,))
                process.pid  # noqa: B018 - raises if the fork failed
            except OSError as error:
                self._pipe.close()
                raise EnvironmentFailure(
                    f"cannot start a process: {error.strerror}. Close other programs."
                ) from error
        self._process = process

    def end(self) -> None:
        if self._process:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None


def call_in_subprocess(pulse: Pulse, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a new process; return its result. Raises what `ChildCaller.call` raises."""
    with ChildCaller() as apart:
        return apart.call(pulse, function, *args, **kwargs)


def _answer_calls(pipe: Pipe) -> None:
    gc.enable()  # The fork server has disabled garbage collection.
    try:
        init_child()
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
