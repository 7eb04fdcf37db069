"""Processes of ours that are forked by one that has imported what they need: they begin at once.

That process, the server, belongs to one measurement, so that it has that one's environment, limits and
streams. It is not multiprocessing's own, which lasts as long as the program, is shared with everybody in it,
and listens at a file that a killed program leaves behind.
"""

from __future__ import annotations

import errno
import io
import math
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from multiprocessing import connection, forkserver, popen_forkserver, reduction, spawn, util
from multiprocessing.context import set_spawning_popen
from multiprocessing.process import BaseProcess
from typing import Any, Self

from sqlstress.system import forking, processes

assert sys.platform != "win32"

END_S = 2.0
AHEAD = 16
"""So many processes are asked for before the first of them has to be there: on a busy machine we would
else wait for our turn, and the server for its own, with each of them. Their descriptors are under way
meanwhile, of which a system bears some hundreds."""
LOST = 255
"""The exit code of a process whose server has ended, and it along; multiprocessing has the same."""


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
        if not self._process or not self._process.is_alive():
            self._end()
            self._begin()
        assert self._channel
        reduction.sendfds(self._channel, descriptors)

    def _begin(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = processes.SPAWNING.start(forking.serve, (theirs, self._modules))

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
                self._take(forkserver.read_signed(self.sentinel))
            except BlockingIOError:
                break
            except (OSError, EOFError):
                self.returncode = LOST
        return self.returncode

    def _take(self, told: int) -> None:
        if self._id is None:
            self._id = told
        else:
            self.returncode = told


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
