"""The folder of one measurement with its databases, and the removal of killed runs' folders.

While a process measures, it locks the marker file of its folder: a folder with an unlocked marker was left by
a killed process. Only files whose names sqlstress uses are deleted.
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
from sqlstress.system.files import lock, reason, remove, short_path
from sqlstress.targets import file_patterns
from sqlstress.targets.place import NOTES_FOLDER, SERVER_FOLDER, TRIAL_FOLDER

PREFIX = "sqlstress-"
MARKER = "sqlstress-folder.json"
SLICE_REPORT = "slice.json"
"""File name of the report of one trial of an A/B test, measured by a separate process.

The process renames a temporary file to this name when the report is complete.
"""
_OUR_FILES = re.compile(
    "|".join((*file_patterns(), r"sync-[0-9a-f]+\.tmp|slice\.json|\.sqlstress-[0-9a-f]+\.tmp"))
)
_ADDED_FOLDER = re.compile(r"further-\d+")
_LOCK_TRIES = 50


class RunFolder:
    """Context manager of the folder of one measurement. It removes the folder unless `keep` is true.

    Entering raises UsageError if `parent` is missing, EnvironmentFailure if `parent` is not writable.
    """

    def __init__(self, parent: Path, keep: bool) -> None:
        self.parent, self.keep = parent, keep
        self.path = parent / f"{PREFIX}{secrets.token_hex(4)}"
        self.stayed: tuple[Path, ...] = ()
        """Paths of our files that could not be removed on leaving."""
        self._marker: IO[str] | None = None

    def __enter__(self) -> RunFolder:
        remove_abandoned(self.parent)
        try:
            self.path.mkdir()
            self._marker = (self.path / MARKER).open("w", encoding="utf-8")
            _lock_marker(self._marker)
            # Write only after locking: an empty marker means that another sqlstress is just starting.
            json.dump({"made_by": "sqlstress", "pid": os.getpid(), "keep": self.keep}, self._marker)
            self._marker.flush()
        except OSError as error:
            self._remove()
            # For an impossible name Path.is_dir raises an error; os.path.isdir returns False.
            kind = EnvironmentFailure if os.path.isdir(self.parent) else UsageError  # noqa: PTH112
            raise kind(
                f"cannot make a folder for the databases in {short_path(self.parent)}: {reason(error)}. "
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
        if not remove_our_files(self.path):
            self.stayed = tuple(_our_files(self.path))

    def _close(self) -> None:
        if self._marker:
            with suppress(OSError):  # a full disk has no room even for the marker
                self._marker.close()


def remove_abandoned(parent: Path) -> list[Path]:
    """Remove the folders that killed processes left in `parent`; return the removed folders.

    Return [] if `parent` is unreadable.
    """
    try:
        candidates = [path for path in parent.iterdir() if path.name.startswith(PREFIX)]
    except OSError:
        return []
    return [path for path in candidates if _is_abandoned(path) and remove_our_files(path)]


def _is_abandoned(path: Path) -> bool:
    marker = path / MARKER
    try:
        if path.is_symlink() or marker.is_symlink() or not marker.is_file():
            return False
        with marker.open("r+", encoding="utf-8") as stream:
            lock(stream)
            content = json.load(stream)
    except (OSError, ValueError):
        return False  # another user's folder, a folder in use, or not our folder
    return (
        isinstance(content, dict) and content.get("made_by") == "sqlstress" and content.get("keep") is False
    )


def remove_our_files(path: Path) -> bool:
    """Delete our files in the run folder `path`, then the folder; return whether the folder is removed.

    Other files stay. If one of our files cannot be deleted, the marker file stays, so that a later run finds
    the folder and tries again.
    """
    for file in _our_files(path):
        with suppress(OSError):
            remove(file)
    try:
        # Only our own database server or the programs of a trial use these folders.
        names, folders = (SERVER_FOLDER, TRIAL_FOLDER, NOTES_FOLDER), (path, *_added_folders(path))
        removable = [folder / name for folder in folders for name in names]
        for inner in filter(_is_folder, removable):
            shutil.rmtree(inner, ignore_errors=True)
        for inner in _added_folders(path):
            with suppress(OSError):
                inner.rmdir()
        if not _our_files(path) and not any(inner.exists() for inner in removable):
            remove(path / MARKER)
        path.rmdir()
    except OSError:
        return False  # the folder holds other files, or another sqlstress has removed the folder
    return True


def make_trial_folder(path: Path) -> Path:
    """Create and return an empty folder for a trial of the user's programs; remove that of the last trial."""
    folder = path / TRIAL_FOLDER
    if _is_folder(folder):
        shutil.rmtree(folder)
    folder.mkdir()
    return folder


def add_subfolder(path: Path) -> Path:
    """Create and return a new folder for later trials, because old files could not be removed."""
    outer = path.parent if _ADDED_FOLDER.fullmatch(path.name) else path
    folder = outer / f"further-{len(_added_folders(outer)) + 1}"
    folder.mkdir()
    return folder


def _added_folders(path: Path) -> list[Path]:
    return [entry for entry in path.iterdir() if _ADDED_FOLDER.fullmatch(entry.name) and _is_folder(entry)]


def _our_files(path: Path) -> list[Path]:
    try:
        entries = [entry for folder in (path, *_added_folders(path)) for entry in folder.iterdir()]
        return [entry for entry in entries if _OUR_FILES.fullmatch(entry.name) and not _is_folder(entry)]
    except OSError:
        return []


def _is_folder(entry: Path) -> bool:
    return entry.is_dir() and not entry.is_symlink()


def _lock_marker(stream: IO[str]) -> None:
    """Lock the new marker file. Raises OSError.

    Retry for 0.5 s: another sqlstress may hold the lock for a moment, to see whether the folder is in use.
    """
    for _ in range(_LOCK_TRIES - 1):
        with suppress(OSError):
            lock(stream)
            return
        time.sleep(0.01)
    lock(stream)
