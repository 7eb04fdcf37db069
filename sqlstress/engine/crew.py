"""Worker processes that stay for the next trial. They connect anew, and need not come up again."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Sequence
from multiprocessing.process import BaseProcess
from operator import is_
from typing import Any, Self

from sqlstress.system.child import Pipe
from sqlstress.system.interrupt import Pulse
from sqlstress.system.sharing import shared_array

TICK_S = 0.1
GRACE_S = 2.0
_WORD = 8


class Crew:
    """Workers by their number, who sleep until they are taken; ended when the block ends.

    They have the shared arrays that they were started with. Nothing of SQLite stays but what settings change
    for a whole process: those who stay have the same settings.
    """

    def __init__(self) -> None:
        self._like: Any = None
        self._shared: tuple[Any, ...] = ()
        self._counters: Any = None
        self._sleeping: dict[int, tuple[BaseProcess, Pipe]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def counters(self, words: int, like: Any, shared: tuple[Any, ...]) -> Any:
        """Return so many shared words of 0, or more, for the next trial.

        Those who sleep are dismissed where they are not like it, or lack what it shares.
        """
        same = len(shared) == len(self._shared) and all(map(is_, shared, self._shared))
        if same and like == self._like and len(self._counters or ()) >= words:
            ctypes.memset(self._counters, 0, _WORD * len(self._counters))
        else:
            self.dismiss()
            self._like, self._shared, self._counters = like, shared, shared_array("q", words)
        return self._counters

    def take(self, number: int, message: Any) -> tuple[BaseProcess, Pipe] | None:
        """Wake a worker with a message, and return it; None when there is none that lives."""
        process, pipe = self._sleeping.pop(number, (None, None))
        if process is None or pipe is None:
            return None
        try:
            pipe.send(message)
        except OSError:  # it was killed in its sleep
            pipe.close()
            end([process])
            return None
        return process, pipe

    def keep(self, number: int, process: BaseProcess, pipe: Pipe) -> None:
        """Let a worker sleep that has done its work."""
        self._sleeping[number] = process, pipe

    def dismiss(self) -> None:
        """End all who sleep."""
        for _, pipe in self._sleeping.values():
            pipe.close()
        end([process for process, _ in self._sleeping.values()])
        self._sleeping.clear()


def joined(processes: Iterable[BaseProcess], timeout_s: float, pulse: Pulse) -> bool:
    """Wait until processes have ended; return whether they did."""
    until = time.monotonic() + timeout_s
    for process in processes:
        # Not by its exit code: multiprocessing would keep it, and its descriptors, until the next start.
        while process.is_alive() and (left := until - time.monotonic()) > 0:
            process.join(min(left, TICK_S))
            pulse()
    return all(process.exitcode is not None for process in processes)


def end(processes: Sequence[BaseProcess]) -> None:
    """Leave no process behind who has been asked to end: wait, then terminate, then kill."""
    for act in (BaseProcess.terminate, BaseProcess.kill):
        if joined(processes, GRACE_S, lambda: None):  # nothing stops us here: we are leaving
            return
        for process in processes:
            if process.exitcode is None:
                act(process)
    joined(processes, GRACE_S, lambda: None)
