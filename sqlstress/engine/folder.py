"""A fresh folder of ours for the databases, and the removal of those that a killed run left behind.

A folder is ours if it holds our marker. It has an owner as long as somebody holds the lock on the
marker.
Only files with our names are ever deleted; whatever else lies there stays.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.system.files import for_message, lock, reason, remove
from sqlstress.targets import file_patterns
from sqlstress.targets.place import NOTES_FOLDER, SERVER_FOLDER, TRIAL_FOLDER

PREFIX = "sqlstress-"
MARKER = "sqlstress-folder.json"
SLICE = "slice.json"
"""The report of another process that measures for us; beside it, what it is written into at first."""
_OURS = re.compile(
    "|".join((*file_patterns(), r"sync-[0-9a-f]+\.tmp|slice\.json|\.sqlstress-[0-9a-f]+\.tmp"))
)
_FURTHER = re.compile(r"further-\d+")
_LOCK_TRIES = 50


class RunFolder:
    """The folder of one measurement: made on entering, removed on leaving unless it is kept.

    Entering raises UsageError when there is no parent, EnvironmentFailure when nothing can be made in it.
    """

    def __init__(self, parent: Path, keep: bool) -> None:
        self.parent, self.keep = parent, keep
        self.path = parent / f"{PREFIX}{secrets.token_hex(4)}"
        self.stayed: tuple[Path, ...] = ()
        """Files of ours that could not be removed on leaving."""
        self._marker: IO[str] | None = None

    def __enter__(self) -> RunFolder:
        remove_abandoned(self.parent)
        try:
            self.path.mkdir()
            self._marker = (self.path / MARKER).open("w", encoding="utf-8")
            _lock_own(self._marker)
            # Written after the lock is held: an empty marker belongs to somebody who is just starting.
            json.dump({"made_by": "sqlstress", "pid": os.getpid(), "keep": self.keep}, self._marker)
            self._marker.flush()
        except OSError as error:
            self._remove()
            # Of a name that no folder can have, Path.is_dir raises what os.path.isdir answers.
            kind = EnvironmentFailure if os.path.isdir(self.parent) else UsageError  # noqa: PTH112
            raise kind(
                f"cannot make a folder for the databases in {for_message(self.parent)}: {reason(error)}. "
                "Choose another --dir."
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self.keep:
            self._close()
            (self.path / MARKER).unlink(missing_ok=True)
        else:
            self._remove()

    def _remove(self) -> None:
        self._close()
        if not remove_ours(self.path):
            self.stayed = tuple(_ours_in(self.path))

    def _close(self) -> None:
        if self._marker:
            with suppress(OSError):  # a full disk takes not even the marker
                self._marker.close()


def remove_abandoned(parent: Path) -> list[Path]:
    """Remove folders of ours below `parent` that have no owner any more; return those removed."""
    try:
        candidates = [path for path in parent.iterdir() if path.name.startswith(PREFIX)]
    except OSError:
        return []
    return [path for path in candidates if _is_abandoned(path) and remove_ours(path)]


def _is_abandoned(path: Path) -> bool:
    marker = path / MARKER
    try:
        if path.is_symlink() or marker.is_symlink() or not marker.is_file():
            return False
        with marker.open("r+", encoding="utf-8") as stream:
            lock(stream)
            marked = json.load(stream)
    except (OSError, ValueError):
        return False  # another user's, somebody's who is alive, or no folder of ours
    return isinstance(marked, dict) and marked.get("made_by") == "sqlstress" and marked.get("keep") is False


def remove_ours(path: Path) -> bool:
    """Delete our files in a folder of ours, and the folder when nothing else is in it.

    The marker stays with a file that can't be deleted, since others have it open: a later start can.
    """
    for file in _ours_in(path):
        with suppress(OSError):
            remove(file)
    try:
        # What is in them was made by a server of ours, or in a trial.
        names, folders = (SERVER_FOLDER, TRIAL_FOLDER, NOTES_FOLDER), (path, *_further_in(path))
        whole = [folder / name for folder in folders for name in names]
        for inner in filter(_is_folder, whole):
            shutil.rmtree(inner, ignore_errors=True)
        for inner in _further_in(path):
            with suppress(OSError):
                inner.rmdir()
        if not _ours_in(path) and not any(inner.exists() for inner in whole):
            remove(path / MARKER)
        path.rmdir()
    except OSError:
        return False  # it holds something else, or another sqlstress was faster
    return True


def trial_folder(path: Path) -> Path:
    """Make a folder for the programs of a trial inside one of ours; what the last one left is removed."""
    made = path / TRIAL_FOLDER
    if _is_folder(made):
        shutil.rmtree(made)
    made.mkdir()
    return made


def further(path: Path) -> Path:
    """Make one more folder inside one of ours, to go on in when files in it can't be removed."""
    outer = path.parent if _FURTHER.fullmatch(path.name) else path
    made = outer / f"further-{len(_further_in(outer)) + 1}"
    made.mkdir()
    return made


def _further_in(path: Path) -> list[Path]:
    return [entry for entry in path.iterdir() if _FURTHER.fullmatch(entry.name) and _is_folder(entry)]


def _ours_in(path: Path) -> list[Path]:
    """Return our files in a folder of ours, without its marker."""
    try:
        entries = [entry for folder in (path, *_further_in(path)) for entry in folder.iterdir()]
        return [entry for entry in entries if _OURS.fullmatch(entry.name) and not _is_folder(entry)]
    except OSError:
        return []


def _is_folder(entry: Path) -> bool:
    try:
        return entry.is_dir() and not entry.is_symlink()
    except OSError:  # such as a name that is too long
        return False


def _lock_own(stream: IO[str]) -> None:
    """Lock the marker just made; another sqlstress that looks whether it is abandoned holds it briefly."""
    for _ in range(_LOCK_TRIES - 1):
        with suppress(OSError):
            lock(stream)
            return
        time.sleep(0.01)
    lock(stream)
