"""How processes of ours are started: forked by one that has imported what they need; on Windows spawned."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlstress.system.processes import SPAWNING, Starter


@contextmanager
def opened(modules: Sequence[str]) -> Iterator[Starter]:
    """Yield what starts processes that need these modules, for as long as the block lasts.

    Where there are none, they are spawned.
    """
    if sys.platform == "win32" or not modules:
        yield SPAWNING
    else:
        from sqlstress.system.forkserver import ForkServer

        with ForkServer(modules) as server:
            yield server
