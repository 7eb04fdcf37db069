"""A VFS that carries out what SQLite asks of the disk, and keeps a log of it.

Folders are synced as SQLite's Unix VFS syncs them: after a deletion that asks for it, and with the first
sync of a journal or WAL that was opened to be created. What a power cut can't leave behind stands in no
log: temporary files, and the wal-index (-shm), which is made anew.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import apsw

from sqlstress.targets.sqlite.disk.device import SECTOR_TOLD, Device
from sqlstress.targets.sqlite.disk.operations import (
    Create,
    Delete,
    Operation,
    Sync,
    SyncFolder,
    Truncate,
    Write,
)
from sqlstress.targets.sqlite.drivers.apsw_driver import ApswConnection

NAME = "sqlstress-recording"

_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
_LASTING = _JOURNALS | apsw.SQLITE_OPEN_MAIN_DB


def characteristics(device: Device) -> int:
    """Return what SQLite is told of a device, as bits of SQLITE_IOCAP."""
    return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE if device.told_powersafe else 0


class Recorder(apsw.VFS):
    """Records what connections do to one folder, from one thread; unregistered when it is left."""

    def __init__(self, device: Device) -> None:
        super().__init__(NAME, "")
        self.device = device
        self.log: list[Operation] = []
        self._files: dict[str, int] = {}
        self._made = 0

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unregister()

    def connect(self, path: Path) -> ApswConnection:
        """Open a database file. Nobody waits: what holds a lock is another connection of this thread."""
        return ApswConnection(path, 0, None, NAME)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        if name is None or not flags[0] & _LASTING:
            return super().xOpen(name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        is_new = not Path(path).exists()
        file = _RecordedFile(self, name, flags)
        if is_new:
            self._made += 1
            self._files[_short(path)] = self._made
            self.log.append(Create(_short(path), self._made))
        file.number = self._files[_short(path)]
        return file

    def xDelete(self, name: str, sync_folder: bool) -> None:
        super().xDelete(name, sync_folder)
        if self._files.pop(_short(name), None) is not None:
            self.log.append(Delete(_short(name)))
        if sync_folder:
            self.log.append(SyncFolder())


class _RecordedFile(apsw.VFSFile):
    """A database, a rollback journal or a WAL."""

    number: int

    def __init__(self, vfs: Recorder, name: str | apsw.URIFilename, flags: list[int]) -> None:
        self._syncs_folder = bool(flags[0] & _JOURNALS and flags[0] & apsw.SQLITE_OPEN_CREATE)
        super().__init__("", name, flags)
        self._log, self._device = vfs.log, vfs.device

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._log.append(Write(self.number, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self._log.append(Truncate(self.number, size))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._log.append(Sync(self.number))
        if self._syncs_folder:
            self._log.append(SyncFolder())
            self._syncs_folder = False

    def xSectorSize(self) -> int:
        return SECTOR_TOLD

    def xDeviceCharacteristics(self) -> int:
        return characteristics(self._device)


def _short(path: str) -> str:
    return Path(path).name
