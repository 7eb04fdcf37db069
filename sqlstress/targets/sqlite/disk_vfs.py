"""A VFS that carries out what SQLite asks of the disk, and keeps a log of it.

Folders are synced as SQLite's Unix VFS syncs them: after a deletion that asks for it, and with the first
sync of a journal or WAL that was opened to be created. What a power cut can't leave behind stands in no
log: temporary files, and the wal-index (-shm), which is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import apsw

from sqlstress.targets.sqlite.disk_model import (
    SECTOR_TOLD,
    Create,
    Delete,
    Device,
    Operation,
    Sync,
    SyncFolder,
    Truncate,
    Write,
)
from sqlstress.targets.sqlite.drivers.apsw_driver import ApswConnection

RECORDING = "sqlstress-recording"

_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
_LASTING = _JOURNALS | apsw.SQLITE_OPEN_MAIN_DB


def characteristics(device: Device) -> int:
    """Return what SQLite is told of a device, as bits of SQLITE_IOCAP."""
    return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE if device.told_powersafe else 0


class _Registered(apsw.VFS):
    """A VFS that is unregistered when it is left."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_how: object) -> None:
        self.unregister()


class Recorder(_Registered):
    """Records what connections do to one folder, from one thread."""

    def __init__(self, device: Device) -> None:
        super().__init__(RECORDING, "")
        self.device = device
        self.log: list[Operation] = []
        self._files: dict[str, int] = {}
        self._made = 0

    def connect(self, path: Path) -> ApswConnection:
        """Open a database file. Nobody waits: what holds a lock is another connection of this thread."""
        return ApswConnection(path, 0, None, RECORDING)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        if name is None or not flags[0] & _LASTING:
            return super().xOpen(name, flags)
        path = Path(_path(name))
        is_new = not path.exists()
        file = _RecordedFile(self, name, flags)
        if is_new:
            self._made += 1
            self._files[path.name] = self._made
            self.log.append(Create(path.name, self._made))
        file.number = self._files[path.name]
        return file

    def xDelete(self, name: str, sync_folder: bool) -> None:
        super().xDelete(name, sync_folder)
        if self._files.pop(Path(name).name, None) is not None:
            self.log.append(Delete(Path(name).name))
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


def _path(name: str | apsw.URIFilename) -> str:
    return name.filename() if isinstance(name, apsw.URIFilename) else name


# A VFS over an image of a disk, in memory: SQLite finds journals and WALs by their names, and recovers.
#
# It tells of the disk what was told when the image came about: SQLite expects of a rollback journal that
# its header is as long as it would write it now.


IMAGE = "sqlstress-image"


class ImageVfs(_Registered):
    """Holds the files of one image at a time."""

    def __init__(self, device: Device) -> None:
        super().__init__(IMAGE, "")
        self._characteristics = characteristics(device)
        self.files: dict[str, bytearray] = {}
        """What the files hold, by name: as the image had it, then as SQLite has recovered it."""

    def load(self, image: Mapping[str, bytes]) -> None:
        """Take another image; every connection to the last one must be closed."""
        self.files = {name: bytearray(data) for name, data in image.items()}

    def connect(self, name: str) -> ApswConnection:
        """Open a database of the image, which is created if it isn't there, as its only user.

        An only user's wal-index is made anew from the WAL in the memory of its process.
        """
        connection = ApswConnection(Path(name), 0, None, IMAGE)
        connection.rows("PRAGMA locking_mode=exclusive")
        return connection

    def xFullPathname(self, name: str) -> str:
        return name

    def xAccess(self, name: str, flags: int) -> bool:
        return bool(self.files.get(name))  # an empty journal is none, as in SQLite's own VFS

    def xDelete(self, name: str, sync_folder: bool) -> None:
        self.files.pop(name, None)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> Any:
        if name is None:
            return super().xOpen(name, flags)
        flags[1] = flags[0]
        return _ImageFile(self.files.setdefault(_path(name), bytearray()), self._characteristics)


class _ImageFile:
    """A file in memory, for its only user: no lock is ever held by anybody else."""

    def __init__(self, data: bytearray, characteristics: int) -> None:
        self._data, self._characteristics = data, characteristics

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self._data[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self._data.extend(bytes(max(0, offset - len(self._data))))
        self._data[offset : offset + len(data)] = data

    def xTruncate(self, size: int) -> None:
        del self._data[size:]

    def xFileSize(self) -> int:
        return len(self._data)

    def _nothing(self, *_: int) -> None:
        """Do nothing: nobody else is there, and no image outlives its process."""

    def _no(self, *_: int) -> bool:
        return False

    xSync = xLock = xUnlock = xClose = _nothing
    xCheckReservedLock = xFileControl = _no

    def xSectorSize(self) -> int:
        return SECTOR_TOLD

    def xDeviceCharacteristics(self) -> int:
        return self._characteristics
