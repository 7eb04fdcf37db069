"""Functions of processes that tests start. The server imports this module without our others."""

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlstress.system.child import Pipe, init_child


def tell(pipe: Pipe) -> None:
    """Send the state of a process at its start, and wait for a message to end."""
    init_child()
    state = {
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
    pipe.send(state)
    pipe.recv()


def links() -> list[str]:
    """Return the open files of this process; none on a system without /proc."""
    paths = []
    for entry in Path("/proc/self/fd").glob("*"):
        try:
            paths.append(str(entry.readlink()))
        except OSError:
            continue  # the descriptor of the folder itself
    return paths


def add(numbers: Any, place: int) -> None:
    """Add to an item of shared memory."""
    init_child()
    numbers[place] += place


def end(how: str) -> None:
    """End by a signal, an error or an exit code."""
    if how.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[how])
    if how == "error":
        raise RuntimeError("injected")
    sys.exit(int(how))


def linger(pipe: Pipe) -> None:
    """Survive Ctrl-C, then sleep longer than any test."""
    init_child()
    signal.raise_signal(signal.SIGINT)
    pipe.send("alive")
    time.sleep(600)


def complain(text: str) -> None:
    """Write to standard error."""
    sys.stderr.write(text)


def hold(modules: Sequence[str]) -> None:
    """Start two processes, print all ids, and wait to be killed. Call it in a separate process."""
    from multiprocessing import Pipe as open_pipe

    import psutil

    from sqlstress.system.processes import process_starter

    with process_starter(modules) as starter:
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
