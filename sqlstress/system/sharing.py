"""Arrays of numbers that processes share, in memory that is certainly available.

Shared memory of multiprocessing is a file in /dev/shm or the temporary folder. RawArray clears it by writing
to the mapped memory. If there is no space (a container's small /dev/shm, a full disk), SIGBUS kills the
process. This module clears the memory by a system call, which returns an error instead.
"""

from __future__ import annotations

import ctypes
import errno
import sys
from multiprocessing import heap, util
from multiprocessing.sharedctypes import rebuild_ctype  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

from sqlstress.errors import EnvironmentFailure

_KINDS: dict[str, type[Any]] = {"H": ctypes.c_uint16, "I": ctypes.c_uint32, "q": ctypes.c_int64}


def shared_array(code: str, length: int) -> Any:
    """Return a shared array of `length` zeros, to pass to processes when they start.

    `code` is a type code of `array`. Raises EnvironmentFailure if no folder for shared memory has space.
    """
    kind = _KINDS[code] * length
    size = ctypes.sizeof(kind)
    try:
        wrapper = _cleared_memory(size)
    except (OSError, MemoryError) as first:
        if isinstance(first, OSError) and first.errno in (errno.EMFILE, errno.ENFILE):
            raise EnvironmentFailure(f"no shared memory: {first.strerror}. Raise ulimit -n.") from first
        if sys.platform == "win32":
            raise _memory_error(size, first) from first
        try:
            _use_temporary_folder()
            wrapper = _cleared_memory(size)
        except (OSError, MemoryError) as second:
            raise _memory_error(size, first, second) from second
    return rebuild_ctype(kind, wrapper, None)


def shared_memory_folder() -> str:
    """Return the folder of shared memory; "" on Windows. Raises EnvironmentFailure if none has space."""
    shared_array("q", 1)
    if sys.platform == "win32":
        return ""
    names = vars(heap.Arena)["_dir_candidates"]
    return names[0] if names else str(Path(util.get_temp_dir()).parent)


def _cleared_memory(size: int) -> Any:
    """Return `size` bytes of cleared shared memory. Raises OSError or MemoryError."""
    wrapper = heap.BufferWrapper(size)
    memory = wrapper.create_memoryview()
    if sys.platform == "win32":
        memory[:] = bytes(len(memory))  # No SIGBUS: Windows reserves the space when it maps the memory.
    else:
        # The memory may have been used before. This system call writes to it, and fails if there is no space.
        with Path("/dev/zero").open("rb", buffering=0) as zeros:
            while memory:
                memory = memory[zeros.readinto(memory) or 0 :]
    return wrapper


def _use_temporary_folder() -> None:
    heap.Arena._dir_candidates = []  # type: ignore[attr-defined]
    # Make a new heap, because the old heap may return the memory whose clearing failed.
    heap.BufferWrapper._heap = heap.Heap()  # type: ignore[attr-defined]


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EFAULT)
"""Error numbers of files that cannot grow. EFAULT is the error of a mapped page without space."""


def _memory_error(size: int, *errors: OSError | MemoryError) -> EnvironmentFailure:
    last = errors[-1]
    if isinstance(last, MemoryError) or last.errno == errno.ENOMEM:
        return EnvironmentFailure(
            f"no memory for {size:,} bytes of shared memory: {_memory_limit_clause()}. Raise the limit, "
            "or lower --key-space."
        )
    if all(isinstance(error, OSError) and error.errno in _NO_SPACE for error in errors):
        return EnvironmentFailure(
            f"not enough space for {size:,} bytes of shared memory in /dev/shm or the temporary folder. "
            "Free some, set TMPDIR to a folder with space, or lower --key-space."
        )
    reasons = dict.fromkeys(
        f"{error.filename or 'file'}: {error.strerror}" for error in errors if isinstance(error, OSError)
    )
    return EnvironmentFailure(
        f"no {size:,} bytes of shared memory: {'; '.join(reasons)}. Allow this user to write to /dev/shm, or "
        "set TMPDIR to a folder that this user can write to."
    )


def _memory_limit_clause() -> str:
    if sys.platform != "win32":
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            return f"the address space is limited to {soft // 1024:,} KiB (ulimit -v)"
    return "the system has no memory left"
