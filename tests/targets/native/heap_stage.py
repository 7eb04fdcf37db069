"""A process that takes 2 MB of the C library, gives them back and takes them again.

It does so before the native loop has run and after, and says how many page faults the second time costs each.

Usage: python -m tests.targets.native.heap_stage
"""

from __future__ import annotations

import ctypes
import resource
import sys
from array import array
from pathlib import Path

from sqlstress.engine.loop import Window
from sqlstress.experiments.kv.acks import shape_of
from sqlstress.experiments.kv.experiment import Load
from sqlstress.experiments.kv.native_loop import NativeSource
from sqlstress.report.case import Case
from sqlstress.system.sharing import shared_array
from sqlstress.targets import open_place

assert sys.platform != "win32"  # it has no such counts
BLOCKS, BLOCK = 500, 4368
"""As many pages as SQLite's cache has by default, each a little larger than a page of the system."""


def taken_again(libc: ctypes.CDLL) -> int:
    """Return the page faults of taking the blocks a second time."""
    blocks = (ctypes.c_void_p * BLOCKS)()  # nothing else is to be allocated behind them
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for place in range(BLOCKS):
            blocks[place] = libc.malloc(BLOCK)
            ctypes.memset(blocks[place] or 0, 1, BLOCK)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        for place in reversed(range(BLOCKS)):
            libc.free(blocks[place])
    return faults


def main() -> None:
    """Measure, run the loop, and measure again."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = (ctypes.c_void_p,)
    before = taken_again(libc)
    load = Load(key_space=100)
    case = Case(driver="dry", spec=load)
    words = shared_array("q", shape_of(case).words)
    source = NativeSource(case, open_place(case, Path()), 1, 1, (words, None, None))
    source.run(Window(0, 0, 1), None, array("q", [0]), array("q", [0]))
    sys.stdout.write(f"{before} {taken_again(libc)}")


if __name__ == "__main__":
    main()
