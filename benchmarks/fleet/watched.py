"""A command watched from outside: how long it took, and the most memory that it had."""

from __future__ import annotations

import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

from benchmarks.fleet.cluster import environment

LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Watched:
    """How a command ended."""

    code: int
    err: str
    seconds: float
    """Since it was started."""
    peak_bytes: int
    """Its own resident memory, at most, as it was seen."""

    @classmethod
    def of(cls, command: subprocess.Popen[str]) -> Watched:
        """Watch a command to its end."""
        own, over = psutil.Process(command.pid), threading.Event()
        begun, peaks = own.create_time(), [0]

        def look() -> None:
            with suppress(psutil.Error):
                while not over.wait(LOOK_S):
                    peaks.append(own.memory_info().rss)

        thread = threading.Thread(target=look)
        thread.start()
        _, err = command.communicate()
        over.set()
        thread.join()
        return cls(command.returncode, err, time.time() - begun, max(peaks))


def watched(command: list[str]) -> Watched:
    """Start a command and watch it to its end."""
    return Watched.of(
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
    )
