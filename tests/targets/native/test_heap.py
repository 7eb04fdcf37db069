"""A worker of the native loop keeps memory that its C library has got from the system."""

import ctypes
import platform
import sys
from array import array
from pathlib import Path

import pytest

from sqlstress.engine.loop import Window
from sqlstress.experiments.kv.acks import shape_of
from sqlstress.experiments.kv.native_loop import NativeSource
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case
from sqlstress.system.processes import call_in_subprocess
from sqlstress.system.sharing import shared_array
from sqlstress.targets import open_place
from sqlstress.targets.native import extension, unavailable_reason
from tests.pulses import nothing

BLOCKS, BLOCK = 500, 4368
"""The default number of pages of SQLite's cache, each a little larger than a page of the system."""
FAULTS_OF_LUCK, FAULTS_OF_CHANCE = 250, 50
"""Page faults, of about 500 pages: without the setting (by luck), and with it (by chance)."""


def taken_again(libc: ctypes.CDLL) -> int:
    """Return the number of page faults when the blocks are allocated a second time."""
    if sys.platform == "win32":
        return 0
    import resource

    blocks = (ctypes.c_void_p * BLOCKS)()  # nothing else may be allocated after them
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for place in range(BLOCKS):
            blocks[place] = libc.malloc(BLOCK)
            ctypes.memset(blocks[place] or 0, 1, BLOCK)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        for place in reversed(range(BLOCKS)):
            libc.free(blocks[place])
    return faults


def before_and_after_a_run() -> tuple[int, int]:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = (ctypes.c_void_p,)
    before = taken_again(libc)
    case = Case(driver="dry", spec=Load(key_space=100))
    words = shared_array("q", shape_of(case).words)
    source = NativeSource(case, open_place(case, Path()), 1, 1, (words, None, None))
    source.run(Window(0, 0, 1), None, array("q", [0]), array("q", [0]))
    return before, taken_again(libc)


@pytest.mark.skipif(unavailable_reason(extension) is not None, reason="nothing was built here")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")
def test_freed_memory_is_reused_without_page_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise the result depends on earlier allocations of the process: the luck that this excludes.
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    before, after = call_in_subprocess(nothing, before_and_after_a_run)
    assert before > FAULTS_OF_LUCK
    assert after < FAULTS_OF_CHANCE
