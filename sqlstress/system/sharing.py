"""Numbers that processes share, in memory that is there for sure.

The memory of multiprocessing is a file: in /dev/shm, where there is room for it, or in the temporary folder.
Its own RawArray clears what it has mapped, and where the file system then finds no room (a container's small
/dev/shm, a full disk), the process is killed by SIGBUS. A system call that writes there fails instead.
"""

from __future__ import annotations

import ctypes
import errno
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
        memory = wrapper.create_memoryview()
        if sys.platform == "win32":
            memory[:] = bytes(len(memory))  # room was found when it was mapped
        else:
            # It may have been used before. A system call writes it, which fails where there is no room.
            with Path("/dev/zero").open("rb", buffering=0) as zeros:
                while memory:
                    memory = memory[zeros.readinto(memory) or 0 :]
    except (OSError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise EnvironmentFailure(f"no shared memory: {error.strerror}. Raise ulimit -n.") from error
        raise EnvironmentFailure(
            f"not enough space for {size:,} bytes of shared memory in /dev/shm or the temporary folder. "
            "Free some, set TMPDIR to a folder with space, or lower --key-space."
        ) from error
    return rebuild_ctype(kind, wrapper, None)
