"""Files: locked by their owner, changed while others have them open, read no further than a limit."""

from __future__ import annotations

import re
import shutil
import sys
import time
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

_TRIES = 20
_PAUSE_S = 0.05
_AT = 1 << 30
_VERBATIM = "\\\\?\\"
"""Before a path, it lets Windows take it at any length."""
LONGEST = 259 if sys.platform == "win32" else sys.maxsize
"""Characters that a path may always have: Windows allows more only where it is told to."""
_TOLD = 200
Result = TypeVar("Result")
_SIZES = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


def tried_again(call: Callable[[], Result]) -> Result:
    """Do something with a file, for a second again and again while it is denied. Raises OSError.

    Windows denies it for a moment to a file that others have open, as a virus scanner does.
    """
    for _ in range(_TRIES - 1):
        try:
            return call()
        except PermissionError:
            time.sleep(_PAUSE_S)
    return call()


def remove(path: Path) -> None:
    """Remove a file, if it is there, in the same way. Raises OSError."""
    tried_again(lambda: path.unlink(missing_ok=True))


def empty(folder: Path) -> None:
    """Remove all that is in a folder. Raises OSError for what can't be."""
    for entry in list(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            remove(entry)


def lock(stream: IO[Any]) -> None:
    """Lock an open file for this process, until it is closed. Raises OSError if another one holds it.

    A lock ends with its process, however that ends, and can't be mistaken for another's.
    """
    if sys.platform == "win32":
        import msvcrt

        # A locked byte can't be read by others on Windows, so it lies far behind the text.
        place = stream.tell()
        stream.seek(_AT)
        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        stream.seek(place)
    else:
        import fcntl

        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def reason(error: OSError) -> str:
    """Say why a file or folder can't be made or found; of one whose path is too long, that it may be that.

    Windows says of it that there is no such file or folder.
    """
    said = error.strerror or type(error).__name__
    names = [name for name in (error.filename, error.filename2) if isinstance(name, str)]
    if isinstance(error, FileNotFoundError) and names:
        return said + too_long(Path(max(names, key=len)))
    return said


def too_long(path: Path) -> str:
    """Say in brackets that Windows may not take a path, for its length; "" of one that is short enough."""
    length = len(str(path.absolute()))
    if length <= LONGEST or str(path).startswith(_VERBATIM):
        return ""
    return f" (a path of {length} characters: Windows takes {LONGEST} unless long ones are allowed)"


def mounts_in(text: str) -> list[list[str]]:
    r"""Return the fields of each line of a mountinfo file, without its octal escapes, such as \040."""
    return [
        [_ESCAPED.sub(lambda code: chr(int(code[1], 8)), field) for field in line.split(" ")]
        for line in text.split("\n")
        if line
    ]


_ESCAPED = re.compile(r"\\([0-7]{3})")
"""A character that Linux does not write as it is: space, tab, newline, backslash."""


def for_message(path: Path) -> str:
    """Return a path for a message, which has to be short enough to say what is wrong, too."""
    text = str(path)
    return text if len(text) <= _TOLD else f"{text[: _TOLD - 2]}.."


def read_text(path: Path, most: int) -> str:
    """Return the text of a file of `most` bytes or fewer. What has no end, such as a device, is larger.

    It is in UTF-8, or as its byte-order mark says: Windows' editors and PowerShell's `>` write one.

    Raises OSError, or ValueError that says what is wrong with it.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        unit, name = next((unit, name) for unit, name in _SIZES if most >= unit)
        raise ValueError(f"it is larger than {most // unit} {name}")
    try:
        # Either encoding knows its mark, and leaves it out.
        return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("it is not text") from error
