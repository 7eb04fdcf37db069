"""How a report gets to disk: as a whole or not at all, and without harm to what is no file.

What is being written lies beside the file that it will replace, locked as long as its writer lives. What a
killed one has left there is known by its name, and by a lock that nobody holds.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.files import lock, reason, told, too_long, tried_again

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,4})")
_STANDARD_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_UNFINISHED = re.compile(r"\.sqlstress-[0-9a-f]{8}\.tmp")
_TRIES = 3
STDOUT = Path("-")
"""What stands for the standard output: no file has this name."""


def is_stdout(path: Path) -> bool:
    """Say whether a path is the standard output, under any of its names."""
    return path == STDOUT or _descriptor(path) == 1


def is_stream(path: Path) -> bool:
    """Say whether text written there stays written: a device, a pipe, an open descriptor. Raises OSError.

    Such an output is to be written once, at the end; a file may be written again as the report grows.
    """
    if path == STDOUT or _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part of it.

    A symbolic link is followed. What is not a file (see `is_stream`) is written into, never replaced.
    Raises EnvironmentFailure.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if path == STDOUT:
            # Into it as into a file: bytes of our own. A reader that has had enough is no error.
            with suppress(BrokenPipeError):
                sys.stdout.flush()
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
        elif is_stream(path):
            descriptor = _descriptor(path)
            with path.open("wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        name = "to the standard output" if path == STDOUT else told(path)
        raise EnvironmentFailure(
            f"cannot write {name}: {reason(error)}. Choose another file with -o."
        ) from error


def _descriptor(path: Path) -> int | None:
    """Return the open descriptor that a path names.

    Opening such a path anew would truncate the file that standard output was redirected to.
    """
    if os.name != "posix":
        return None
    found = _DESCRIPTOR.fullmatch(str(path))
    return int(found[1]) if found else _STANDARD_STREAMS.get(str(path))


def check_length(target: Path) -> None:
    """Try a path that is too long for some Windows, and what lies beside it meanwhile. Raises OSError."""
    longer = max((target, _beside(target)), key=lambda path: len(str(path)))
    if too_long(longer) and not longer.exists():
        longer.open("xb").close()
        longer.unlink()


def _beside(target: Path) -> Path:
    return target.with_name(f".sqlstress-{token_hex(4)}.tmp")


def _replace(target: Path, data: bytes) -> None:
    for _ in range(_TRIES - 1):
        # Before it is locked, and when it is closed, another sqlstress may take it for abandoned.
        with suppress(FileNotFoundError):
            return _replace_at_once(target, data)
    return _replace_at_once(target, data)


def _replace_at_once(target: Path, data: bytes) -> None:
    temporary = _beside(target)
    try:
        with temporary.open("xb") as file:
            with suppress(OSError):  # a file system without locks: then nobody else takes one either
                lock(file)
            if target.exists():  # what nobody else may read stays so
                shutil.copymode(target, temporary)
            file.write(data)
        tried_again(lambda: temporary.replace(target))
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_unfinished(folder: Path) -> None:
    """Remove from a folder what writers of reports have left there that are no longer alive."""
    with suppress(OSError):
        for path in folder.iterdir():
            if _UNFINISHED.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                with suppress(OSError):  # it is locked, or another user's
                    with path.open("rb") as file:
                        lock(file)
                    path.unlink()
