"""Numbers that processes share, in memory that is there for sure.

The memory of multiprocessing is a file: in /dev/shm, where there is room for it, or in the temporary folder.
Its own RawArray clears what it has mapped, and where the file system then finds no room (a container's small
/dev/shm, a full disk), the process is killed by SIGBUS. A system call that writes there fails instead.
"""

from __future__ import annotations

import ctypes
import sys
from multiprocessing.heap import BufferWrapper
from multiprocessing.sharedctypes import rebuild_ctype  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

from sqlstress.errors import EnvironmentFailure

_KINDS: dict[str, type[Any]] = {"H": ctypes.c_uint16, "I": ctypes.c_uint32, "q": ctypes.c_int64}


def shared_array(code: str, length: int) -> Any:
    """Return so many zeros of a kind, named as by `array`, that can be handed to processes when they start.

    Raises EnvironmentFailure where there is no room for them.
    """
    kind = _KINDS[code] * length
    size = ctypes.sizeof(kind)
    try:
        wrapper = BufferWrapper(size)
        _clear(wrapper.create_memoryview())
    except (OSError, MemoryError) as error:
        raise EnvironmentFailure(
            f"there is no room for {size:,} bytes of shared memory, neither in /dev/shm nor in the "
            "temporary folder. Free some, let TMPDIR name a folder with room, or lower --key-space."
        ) from error
    return rebuild_ctype(kind, wrapper, None)


def _clear(memory: memoryview) -> None:
    """Write zeros, since memory is used again. Raises OSError where there is no room."""
    if sys.platform == "win32":
        memory[:] = bytes(len(memory))  # room was found when it was mapped
        return
    with Path("/dev/zero").open("rb", buffering=0) as zeros:
        while memory:
            memory = memory[zeros.readinto(memory) or 0 :]
