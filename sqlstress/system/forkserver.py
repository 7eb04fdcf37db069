"""Processes of ours that are forked by one that has imported what they need: they begin at once.

That process, the server, belongs to one measurement, so that it has that one's environment, limits and
streams. It is not multiprocessing's own, which lasts as long as the program, is shared with everybody in it,
and listens at a file that a killed program leaves behind.
"""

from __future__ import annotations

import errno
import gc
import io
import math
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from multiprocessing import connection, forkserver, popen_forkserver, reduction, spawn, util
from multiprocessing.context import set_spawning_popen
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn, Self

from sqlstress.system import child, processes

assert sys.platform != "win32"

END_S = 2.0
AHEAD = 16
"""So many processes are asked for before the first of them has to be there: on a busy machine we would
else wait for our turn, and the server for its own, with each of them. Their descriptors are under way
meanwhile, of which a system bears some hundreds."""
LOST = 255
"""The exit code of a process whose server has ended, and it along; multiprocessing has the same."""


_PRIVATE = (
    (spawn, "_main", 2),
    (spawn, "get_preparation_data", 1),
    (forkserver, "read_signed", 1),
    (forkserver, "write_signed", 2),
    (reduction, "dump", 2),
    (reduction, "sendfds", 2),
    (reduction, "recvfds", 2),
    (popen_forkserver.Popen, "duplicate_for_child", 2),
)
"""What is used of multiprocessing that it does not document, with the number of its arguments."""


def is_possible() -> bool:
    """Return whether this Python's multiprocessing has what is used of it here, as it is known."""
    state = vars(getattr(forkserver, "_forkserver", None) or object).keys()
    return "_inherited_fds" in state and all(_takes(*one) for one in _PRIVATE)


def _takes(home: object, name: str, arguments: int) -> bool:
    function = vars(home).get(name)
    code = getattr(function, "__code__", None)
    optional = len(getattr(function, "__defaults__", None) or ())
    return code is not None and code.co_argcount - optional <= arguments <= code.co_argcount


class ForkServer:
    """Forks processes from one that has imported these modules; leaves none when the block ends."""

    def __init__(self, modules: Sequence[str]) -> None:
        # What it forks is told to be a process of a class that is defined here.
        self._modules = (__name__, *modules)
        self._channel: socket.socket | None = None
        self._process: BaseProcess | None = None
        self._ahead: deque[BaseProcess] = deque()

    def __enter__(self) -> Self:
        with suppress(OSError):  # it is tried again when a process is wanted
            self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def start(self, main: Callable[..., None], args: tuple[Any, ...]) -> BaseProcess:
        """Start a process. Raises OSError."""
        process = _ForkedProcess(target=main, args=args, daemon=True)
        token = _SERVER.set(self)
        try:
            processes.start(process)
        finally:
            _SERVER.reset(token)
        self._ahead.append(process)
        if len(self._ahead) > AHEAD:
            self._ahead.popleft().ident  # noqa: B018
        return process

    def fork(self, descriptors: list[int]) -> None:
        """Fork a process that inherits these descriptors of ours. Raises OSError."""
        if self._channel and self._process and self._process.is_alive():
            with suppress(BrokenPipeError):  # it was killed a moment ago, and still counts as alive
                return reduction.sendfds(self._channel, descriptors)
        self._end()
        self._begin()
        assert self._channel
        return reduction.sendfds(self._channel, descriptors)

    def _begin(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = processes.SPAWNING.start(serve, (theirs, self._modules))

    def _end(self) -> None:
        if self._channel:
            self._channel.close()
        if self._process:
            self._process.join(END_S)
            self._process.kill()
            self._process.join()
        self._channel = self._process = None
        self._ahead.clear()


_SERVER: ContextVar[ForkServer] = ContextVar("server")
"""Who forks the process that is just being started."""


class _ForkedProcess(BaseProcess):
    _start_method = "spawn"

    @staticmethod
    def _Popen(process: BaseProcess) -> _Forked:
        return _Forked(process)


class _Forked(popen_forkserver.Popen):
    """A running process, as multiprocessing needs to know it."""

    _fds: list[int]
    """What it inherits."""
    _id: int | None = None
    """As it was told; or minus the number of the error that kept it from being forked."""

    def _launch(self, process: BaseProcess) -> None:
        told = io.BytesIO()
        set_spawning_popen(self)
        try:
            reduction.dump(spawn.get_preparation_data(process.name), told)
            reduction.dump(process, told)
        finally:
            set_spawning_popen(None)
        task, ours = os.pipe()
        self.sentinel, status = os.pipe()
        # The process takes it for our end when it can read no more: `ours` stays open as long as we live.
        self.finalizer = util.Finalize(self, _close, (ours, self.sentinel))
        try:
            _SERVER.get().fork([task, status, *self._fds])
        finally:
            _close(task, status)
        os.set_blocking(self.sentinel, False)
        # One that could not be forked reads nothing; its id says so.
        with suppress(BrokenPipeError), open(ours, "wb", closefd=False) as stream:
            stream.write(told.getbuffer())

    @property
    def pid(self) -> int:  # type: ignore[override]
        """Its id, as soon as it is forked. Raises OSError when it could not be."""
        while self.poll() is None and self._id is None:
            connection.wait([self.sentinel])
        if self._id is None:
            raise OSError(errno.EPIPE, "the process that forks it has ended")
        if self._id < 0:
            raise OSError(-self._id, os.strerror(-self._id))
        return self._id

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code; None while it runs, after so many seconds."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        # The first thing to be read is its id: that there is something says not that it has ended.
        while self.poll() is None and (left := until - time.monotonic()) > 0:
            connection.wait([self.sentinel], None if timeout is None else left)
        return self.returncode

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """Return the exit code; None while it runs."""
        while self.returncode is None:
            try:
                number = forkserver.read_signed(self.sentinel)
            except BlockingIOError:
                break
            except (OSError, EOFError):
                self.returncode = LOST
            else:
                if self._id is None:
                    self._id = number
                else:
                    self.returncode = number
        return self.returncode


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


# What the fork server's process does: it imports, then forks a process for each that is asked for.
#
# It has one thread and opens nothing, so what it forks begins like what is spawned. It ends when nobody
# holds the other end of its channel any more; and what it has forked ends when it does, since from then on
# nobody could tell whether that still runs.


MOST = 250
"""Descriptors that a process is handed: Linux passes on at most 253 at once."""


def serve(channel: socket.socket, modules: Sequence[str]) -> None:
    """Fork processes until the other end of the channel is closed."""
    for name in modules:
        with suppress(ImportError):  # who needs it says so
            import_module(name)
    gc.collect()
    gc.freeze()  # else the first collection in each child would copy all of it
    gc.disable()  # in what is forked too: a page that nobody writes to is shared by all of them
    _Server(channel).run()
    os._exit(0)  # there is nothing to be tidied up


class _Server:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lifeline, self._alive = os.pipe()
        """Of the second end only this process keeps a copy."""
        self._ended, self._wake = os.pipe()
        self._status: dict[int, int] = {}
        """The descriptor for the exit code of each process that runs, by its id."""
        os.set_blocking(self._ended, False)
        os.set_blocking(self._wake, False)

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        while True:
            ready = connection.wait([self._channel, self._ended])
            if self._ended in ready:
                os.read(self._ended, 4096)
                self._tell_ends()
            if self._channel in ready:
                try:
                    descriptors = reduction.recvfds(self._channel, MOST)
                except (EOFError, ConnectionError):
                    return
                self._fork(*descriptors)

    def _fork(self, task: int, status: int, *inherited: int) -> None:
        """Fork a process that reads its task; write its id to `status`, or minus an error's number."""
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            os.close(status)
            self._become(task, inherited)
        with suppress(BrokenPipeError):
            forkserver.write_signed(status, pid)
        for descriptor in (task, *inherited):
            os.close(descriptor)
        if pid > 0:
            self._status[pid] = status
        else:
            os.close(status)

    def _become(self, task: int, inherited: Sequence[int]) -> NoReturn:
        """Be a process of its own, that has nothing of the server's."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._channel.close()
            for descriptor in (self._alive, self._ended, self._wake, *self._status.values()):
                os.close(descriptor)
            child.LIFELINES.append(self._lifeline)
            vars(forkserver._forkserver)["_inherited_fds"] = list(inherited)
            code = spawn._main(task, os.dup(task))
        except EOFError:
            pass  # whoever asked for it has ended
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with suppress(OSError, ValueError, AttributeError):  # a closed stream is None
                sys.stderr.flush()
            os._exit(code)

    def _tell_ends(self) -> None:
        """Hand on the exit code of every process that has ended."""
        while self._status:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            status = self._status.pop(pid)
            with suppress(BrokenPipeError):
                forkserver.write_signed(status, os.waitstatus_to_exitcode(how))
            os.close(status)
