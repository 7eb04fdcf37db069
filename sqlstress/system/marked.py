"""Processes that are known by a mark in their environment: apart, since workers know no psutil."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

from sqlstress.system.processes import GRACE_S


def end_marked(name: str, value: str) -> int:
    """End all processes but this one whose environment has a variable of this value; return their number.

    Whoever started them, and whatever became of that.
    """
    ended = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended, or is another user's
            if process.pid != os.getpid() and process.environ().get(name) == value:
                ended.append(process)
                process.kill()
    psutil.wait_procs(ended, GRACE_S)
    return len(ended)
