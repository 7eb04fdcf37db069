"""What the user's code forks: it must neither come back into our loop nor outlive us."""

from __future__ import annotations

import os
import threading
from typing import NoReturn

from sqlstress.system.child import end_with_parent

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
