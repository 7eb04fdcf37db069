"""Processes that have a mark in their environment: whoever started them, and whatever became of that."""

from __future__ import annotations

import os

import psutil

_PATIENCE_S = 2.0


def end_marked(name: str, value: str) -> int:
    """End all processes but this one whose environment has a variable of this value; return their number."""
    found = [process for process in psutil.process_iter() if _is_marked(process, name, value)]
    for process in found:
        try:
            process.kill()
        except psutil.Error:
            pass  # it has ended by itself
    psutil.wait_procs(found, _PATIENCE_S)
    return len(found)


def _is_marked(process: psutil.Process, name: str, value: str) -> bool:
    try:
        return process.pid != os.getpid() and process.environ().get(name) == value
    except (psutil.Error, OSError):
        return False  # it has ended, or is another user's
