"""How processes of ours are started: forked by one that has imported what they need, or spawned.

They are spawned on Windows, and where this Python's multiprocessing is not the one that `forkserver` knows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from sqlstress.system.processes import SPAWNING, Starter


@contextmanager
def opened(modules: Sequence[str]) -> Iterator[Starter]:
    """Yield what starts processes that need these modules, for as long as the block lasts.

    Where there are none, they are spawned.
    """
    with _forking(modules) if modules else nullcontext(SPAWNING) as starter:
        yield starter


def _forking(modules: Sequence[str]) -> AbstractContextManager[Starter]:
    if sys.platform == "win32":
        return nullcontext(SPAWNING)
    try:
        from sqlstress.system import forkserver
    except (ImportError, AttributeError):  # of what multiprocessing keeps to itself
        return nullcontext(SPAWNING)
    return forkserver.ForkServer(modules) if forkserver.is_possible() else nullcontext(SPAWNING)
