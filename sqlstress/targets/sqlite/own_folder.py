"""The folder that programs of the user's have to themselves in a trial: all that lies in it belongs to it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from sqlstress.system.files import remove

_MAGIC = b"SQLite format 3\0"


def empty(folder: Path) -> None:
    """Remove all that is in a folder. Raises OSError for what can't be."""
    for entry in list(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            remove(entry)


def databases_in(folder: Path, without: Sequence[Path]) -> list[Path]:
    """Return the databases in a folder and below, as far as their first bytes say that they are."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in found if path not in without and _is_database(path)]


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False
