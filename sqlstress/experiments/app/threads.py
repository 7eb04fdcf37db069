"""Threads of the user's code that do not end with its work: a process waits for them, and nobody should."""

from __future__ import annotations

import os
import sys
import threading
import time

PATIENCE_S = 2.0
_POOLS = "concurrent.futures.thread"


def lasting() -> list[str]:
    """Return the names of the threads that keep this process from ending, after they have had time to end."""
    until = time.monotonic() + PATIENCE_S
    for thread in _keeping():
        thread.join(max(0.0, until - time.monotonic()))
    return sorted(thread.name for thread in _keeping())


def _keeping() -> list[threading.Thread]:
    # Those of a pool are told to end when the process does, which is not yet.
    of_pools = getattr(sys.modules.get(_POOLS), "_threads_queues", ())
    ours = (threading.current_thread(), threading.main_thread())
    return [
        one for one in threading.enumerate() if not one.daemon and one not in ours and one not in of_pools
    ]


def leave_without_them() -> None:
    """Let this process end with its main thread, whoever else still runs."""
    threading.Thread(target=_leave, daemon=True).start()


def _leave() -> None:
    threading.main_thread().join()
    os._exit(0)
