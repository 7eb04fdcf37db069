"""The file system that holds a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePath, PureWindowsPath
from typing import Protocol

import psutil

from sqlstress.report import FileSystem

UNKNOWN = FileSystem("", "", "")
DATA_VOLUME = Path("/System/Volumes/Data")
"""On macOS the folders of users lie on this volume, though their paths begin at the read-only root."""


class Mount(Protocol):
    """What is asked of an entry of psutil.disk_partitions()."""

    @property
    def device(self) -> str: ...
    @property
    def mountpoint(self) -> str: ...
    @property
    def fstype(self) -> str: ...
    @property
    def opts(self) -> str: ...


def all_mounts() -> Iterable[Mount]:
    """Return everything that is mounted, in the order in which it was."""
    return psutil.disk_partitions(all=True)


def describe(
    folder: Path, mounts: Callable[[], Iterable[Mount]] = all_mounts, data_volume: Path = DATA_VOLUME
) -> FileSystem:
    """Return the file system of a folder, symbolic links resolved; every field empty when it is not known."""
    try:
        return find(_place(folder.resolve(), data_volume), mounts())
    except (OSError, RuntimeError, psutil.Error):
        return UNKNOWN


def find(place: PurePath, mounts: Iterable[Mount]) -> FileSystem:
    """Return the file system with the longest mount point above a resolved path."""
    if isinstance(place, PureWindowsPath) and place.drive.startswith("\\\\"):
        # A share without a letter is in no list; psutil says "remote" of one with a letter.
        return FileSystem("", place.drive, "remote")
    above = [
        (len(point.parts), number, mount)
        for number, mount in enumerate(mounts)
        if place.is_relative_to(point := type(place)(mount.mountpoint))
    ]
    if not above:
        return UNKNOWN
    # Of two mounts on one place the later hides the earlier.
    *_, mount = max(above, key=lambda found: found[:2])
    return FileSystem(mount.fstype, mount.device, mount.opts)


def _place(resolved: Path, data_volume: Path) -> Path:
    """Return the path by which the mount of a folder is found."""
    elsewhere = data_volume.joinpath(*resolved.parts[1:])
    if resolved.is_relative_to(data_volume) or not elsewhere.exists():
        return resolved
    return elsewhere if resolved.samefile(elsewhere) else resolved
