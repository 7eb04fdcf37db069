"""Processes that start fast: a server forks them after it has imported the modules that they need.

The server belongs to one measurement, so that it has the measurement's environment, limits and streams.

The fork server of multiprocessing is about as fast (benchmarks/results/forkserver.md). Reasons against it:

- In Python 3.11 to 3.14, a SIGKILL of the program leaves the server's socket file and folder behind, and the
  next start of sqlstress cannot know whether they are in use.
- If the system refuses a fork, that server prints a traceback and ends. Our server reports the error.
- A program has only one such server. In a program that uses sqlstress as a library, our modules would
  replace the program's, and stopping the server would wait for the program's processes.

Spawned processes leave nothing behind, but 64 of them need 9.5 times as long and 3.4 times the memory.
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
"""Maximum number of processes that are requested from the server before the first of them has started.

On a busy machine, it is slow to wait for each process. But systems limit the file descriptors in messages
that the server has not read yet, to some hundreds.
"""
LOST_EXIT_CODE = 255
"""Exit code of a process that ended because the fork server ended, as in multiprocessing."""

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
"""Undocumented functions of multiprocessing that this module calls, with their numbers of arguments."""


def is_possible() -> bool:
    """Return whether this Python's multiprocessing has the undocumented functions of _PRIVATE."""
    state = vars(getattr(forkserver, "_forkserver", None) or object).keys()
    return "_inherited_fds" in state and all(_takes(*function) for function in _PRIVATE)


def _takes(home: object, name: str, arguments: int) -> bool:
    function = vars(home).get(name)
    code = getattr(function, "__code__", None)
    optional = len(getattr(function, "__defaults__", None) or ())
    return code is not None and code.co_argcount - optional <= arguments <= code.co_argcount


class ForkServer(processes.Starter):
    """Starter of processes, which a server process forks after it has imported `modules`.

    The server runs during the `with` block.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        # This module is imported, too, because each forked process loads an object of a class defined here.
        self._modules = (__name__, *modules)
        self._channel: socket.socket | None = None
        self._process: BaseProcess | None = None
        self._ahead: deque[BaseProcess] = deque()

    def __enter__(self) -> Self:
        with suppress(OSError):  # If starting the server fails, the next request tries again.
            self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def start(self, main: Callable[..., None], args: tuple[Any, ...]) -> BaseProcess:
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
        """Let the server fork a process that inherits `descriptors`. Raises OSError.

        If the server has died, start it again first.
        """
        if self._channel and self._process and self._process.is_alive():
            with suppress(BrokenPipeError):  # A server that was just killed still counts as alive.
                return reduction.sendfds(self._channel, descriptors)
        self._end()
        self._begin()
        assert self._channel
        return reduction.sendfds(self._channel, descriptors)

    def _begin(self) -> None:
        self._channel, server_end = socket.socketpair()
        with server_end:
            self._process = processes.SPAWNING.start(serve, (server_end, self._modules))

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
"""Server that forks the process that is being started."""


class _ForkedProcess(BaseProcess):
    _start_method = "spawn"

    @staticmethod
    def _Popen(process: BaseProcess) -> _Forked:
        return _Forked(process)


class _Forked(popen_forkserver.Popen):
    """Handle of a forked process, with the methods that multiprocessing calls."""

    _fds: list[int]
    """Descriptors of this process that the forked process inherits."""
    _id: int | None = None
    """Process id, or a negative error number if the fork failed; None until the server has answered."""

    def _launch(self, process: BaseProcess) -> None:
        task_data = io.BytesIO()
        set_spawning_popen(self)
        try:
            reduction.dump(spawn.get_preparation_data(process.name), task_data)
            reduction.dump(process, task_data)
        finally:
            set_spawning_popen(None)
        task, task_writer = os.pipe()
        self.sentinel, status = os.pipe()
        # Keep `task_writer` open: if this process ends, the forked process reads the end of the file.
        self.finalizer = util.Finalize(self, _close, (task_writer, self.sentinel))
        try:
            _SERVER.get().fork([task, status, *self._fds])
        finally:
            _close(task, status)
        os.set_blocking(self.sentinel, False)
        # After a failed fork, no process reads the task, and the negative id reports the failure.
        with suppress(BrokenPipeError), open(task_writer, "wb", closefd=False) as stream:
            stream.write(task_data.getbuffer())

    @property
    def pid(self) -> int:  # type: ignore[override]
        """Process id, after a wait for the server's answer. Raises OSError if the fork failed."""
        while self.poll() is None and self._id is None:
            connection.wait([self.sentinel])
        if self._id is None:
            raise OSError(errno.EPIPE, "the process that forks it has ended")
        if self._id < 0:
            raise OSError(-self._id, os.strerror(-self._id))
        return self._id

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code; None if the process still runs after `timeout` seconds."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        # The sentinel is readable before the end of the process, too: the process id arrives on it first.
        while self.poll() is None and (left := until - time.monotonic()) > 0:
            connection.wait([self.sentinel], None if timeout is None else left)
        return self.returncode

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """Return the exit code; None while the process runs."""
        while self.returncode is None:
            try:
                number = forkserver.read_signed(self.sentinel)
            except BlockingIOError:
                break
            except (OSError, EOFError):
                self.returncode = LOST_EXIT_CODE
            else:
                if self._id is None:
                    self._id = number
                else:
                    self.returncode = number
        return self.returncode


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


MOST = 250
"""Maximum number of descriptors for a process. Linux passes at most 253 in one message."""


def serve(channel: socket.socket, modules: Sequence[str]) -> None:
    """Run the server: import the modules, and fork a process per request until the channel is closed.

    The server has one thread and opens no file, so that forked processes start like spawned processes. They
    end when the server ends, because no other process could report their exit codes.
    """
    for name in modules:
        with suppress(ImportError):  # The process that needs the module reports the error.
            import_module(name)
    gc.collect()
    gc.freeze()  # Otherwise the first collection in each forked process would copy all objects.
    # Collection stays off in forked processes, because it would write to pages that they share.
    gc.disable()
    _Server(channel).run()
    os._exit(0)  # Nothing needs to be closed.


class _Server:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lifeline, self._alive = os.pipe()
        """Pipe whose write end only the server keeps: end of file shows that the server has ended."""
        self._ended, self._wake = os.pipe()
        self._status: dict[int, int] = {}
        """Descriptors to which the exit codes of running processes are written, by process id."""
        os.set_blocking(self._ended, False)
        os.set_blocking(self._wake, False)

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        while True:
            ready = connection.wait([self._channel, self._ended])
            if self._ended in ready:
                os.read(self._ended, 4096)
                self._report_exit_codes()
            if self._channel in ready:
                try:
                    descriptors = reduction.recvfds(self._channel, MOST)
                except (EOFError, ConnectionError):
                    return
                self._fork(*descriptors)

    def _fork(self, task: int, status: int, *inherited: int) -> None:
        """Fork a process that reads its task from `task`. Write its id, or a negative errno, to `status`."""
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            os.close(status)
            self._run_task(task, inherited)
        with suppress(BrokenPipeError):
            forkserver.write_signed(status, pid)
        for descriptor in (task, *inherited):
            os.close(descriptor)
        if pid > 0:
            self._status[pid] = status
        else:
            os.close(status)

    def _run_task(self, task: int, inherited: Sequence[int]) -> NoReturn:
        """Run the task in the forked process, without the server's descriptors and signal handlers."""
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
            pass  # The parent has ended.
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with suppress(OSError, ValueError, AttributeError):  # A closed stream is None.
                sys.stderr.flush()
            os._exit(code)

    def _report_exit_codes(self) -> None:
        while self._status:
            pid, wait_status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            status = self._status.pop(pid)
            with suppress(BrokenPipeError):
                forkserver.write_signed(status, os.waitstatus_to_exitcode(wait_status))
            os.close(status)
