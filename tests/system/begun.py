"""What processes that tests start do. Importable by the server, by itself and without anything of ours."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlstress.system.child import Pipe, begin_child


def tell(pipe: Pipe) -> None:
    """Tell what a process is like when it begins, and wait until it may end."""
    begin_child()
    known = {
        "pid": os.getpid(),
        "cwd": str(Path.cwd()),
        "path": sys.path,
        "argv": sys.argv,
        "value": os.environ.get("SQLSTRESS_TEST_VALUE"),
        "random": random.random(),
        "files": links(),
        "threads": threading.active_count(),
        "main": getattr(sys.modules["__main__"], "__file__", None),
        "modules": set(sys.modules),
    }
    pipe.send(known)
    pipe.recv()


def links() -> list[str]:
    """Return what this process has open; nothing where there is no /proc."""
    found = []
    for entry in Path("/proc/self/fd").glob("*"):
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue  # the one that the folder was read with
    return found


def add(numbers: Any, place: int) -> None:
    """Write into shared memory."""
    begin_child()
    numbers[place] += place


def end(how: str) -> None:
    """End in some way."""
    if how.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[how])
    if how == "error":
        raise RuntimeError("injected")
    sys.exit(int(how))


def linger(pipe: Pipe) -> None:
    """Survive Ctrl-C, and then wait for longer than anybody does for it."""
    begin_child()
    signal.raise_signal(signal.SIGINT)
    pipe.send("alive")
    time.sleep(600)


def complain(text: str) -> None:
    """Write to where errors go."""
    sys.stderr.write(text)


def hold(modules: Sequence[str]) -> None:
    """Start two processes, tell all ids, and wait to be killed: to be called in a process of its own."""
    from multiprocessing import Pipe as open_pipe

    import psutil

    from sqlstress.system.processes import starting

    with starting(modules) as starter:
        pipes = []
        for _ in range(2):
            ours, theirs = open_pipe()
            starter.start(linger, (theirs,))
            pipes.append(ours)
        for pipe in pipes:
            pipe.recv()
        pids = [child.pid for child in psutil.Process().children(recursive=True)]
        sys.stdout.write(" ".join(map(str, pids)) + "\n")
        sys.stdout.flush()
        time.sleep(600)
