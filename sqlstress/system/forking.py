"""What the fork server's process does: it imports, then forks a process for each that is asked for.

It has one thread and opens nothing, so what it forks begins like what is spawned. It ends when nobody
holds the other end of its channel any more; and what it has forked ends when it does, since from then on
nobody could tell whether that still runs.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing import connection, forkserver, reduction, spawn
from typing import NoReturn

from sqlstress.system import child

assert sys.platform != "win32"

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
            with suppress(OSError, ValueError):
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
