"""What the user's code starts and does not end: threads that keep a process, and processes that it forks."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import NoReturn

from sqlstress.system.child import end_with_parent

# Threads that do not end with the work: a process waits for them, and nobody should.


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


# What is forked must neither come back into our loop nor outlive us.


_forked: list[bool] = []
"""Not empty in a process that was forked from one of ours."""


def end_forks_with_us() -> None:
    """See to it that what is forked from now on ends when the parent of this process does."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_begin)


def _begin() -> None:
    _forked.append(True)
    # The thread that waits for the parent's end has stayed behind in the process that forked.
    threading.Thread(target=end_with_parent, daemon=True).start()


def is_fork() -> bool:
    """Return whether this process is one."""
    return bool(_forked)


def leave() -> NoReturn:
    """End a fork that has come back from the user's code: our pipes and its connections are not its own."""
    os._exit(0)
