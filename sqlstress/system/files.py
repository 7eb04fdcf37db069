"""Operations on files: lock, remove while other programs have them open, read up to a limit."""

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
_LOCK_OFFSET = 1 << 30
_VERBATIM = "\\\\?\\"
"""Prefix of a path that Windows accepts at any length."""
MAX_PATH_LENGTH = 259 if sys.platform == "win32" else sys.maxsize
"""Maximum length of a path, in characters, unless Windows is configured to allow longer paths."""
_MAX_MESSAGE = 200
Result = TypeVar("Result")
_SIZES = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


def retry_while_denied(call: Callable[[], Result]) -> Result:
    """Call a function that uses a file; retry for a second while permission is denied. Raises OSError.

    Windows denies access for a moment if another program, such as a virus scanner, has the file open.
    """
    for _ in range(_TRIES - 1):
        try:
            return call()
        except PermissionError:
            time.sleep(_PAUSE_S)
    return call()


def remove(path: Path) -> None:
    """Remove a file if it exists; retry for a second while permission is denied. Raises OSError."""
    retry_while_denied(lambda: path.unlink(missing_ok=True))


def empty(folder: Path) -> None:
    """Remove everything in a folder. Raises OSError."""
    for entry in list(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            remove(entry)


def lock(stream: IO[Any]) -> None:
    """Lock an open file until it is closed. Raises OSError if another process has the lock."""
    if sys.platform == "win32":
        import msvcrt

        # On Windows other processes cannot read a locked byte, so lock a byte far behind the text.
        position = stream.tell()
        stream.seek(_LOCK_OFFSET)
        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        stream.seek(position)
    else:
        import fcntl

        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def reason(error: OSError) -> str:
    """Return the text of an error, with a note if its path is too long for Windows."""
    text = error.strerror or type(error).__name__
    names = [name for name in (error.filename, error.filename2) if isinstance(name, str)]
    if isinstance(error, FileNotFoundError) and names:
        return text + path_length_note(Path(max(names, key=len)))
    return text


def path_length_note(path: Path) -> str:
    """Return a note, in brackets, if a path is too long for Windows; else ""."""
    length = len(str(path.absolute()))
    if length <= MAX_PATH_LENGTH or str(path).startswith(_VERBATIM):
        return ""
    return f" (a path of {length} characters: Windows takes {MAX_PATH_LENGTH} unless long ones are allowed)"


def parse_mountinfo(text: str) -> list[list[str]]:
    r"""Return the fields of each line of a mountinfo file, with octal escapes, such as \040, decoded."""
    return [
        [_ESCAPED.sub(lambda code: chr(int(code[1], 8)), field) for field in line.split(" ")]
        for line in text.split("\n")
        if line
    ]


_ESCAPED = re.compile(r"\\([0-7]{3})")
"""Pattern of an octal escape, which Linux writes for a space, tab, newline or backslash."""


def short_path(path: Path) -> str:
    """Return a path for a message, cut to _MAX_MESSAGE characters."""
    text = str(path)
    return text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE - 2]}.."


def read_text(path: Path, most: int) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte-order mark, as editors on Windows write.

    Raises OSError, or ValueError if the file has more than `most` bytes or is not text.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        unit, name = next((unit, name) for unit, name in _SIZES if most >= unit)
        raise ValueError(f"it is larger than {most // unit} {name}")
    try:
        # Both codecs recognise their byte-order mark and remove it.
        return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("it is not text") from error
