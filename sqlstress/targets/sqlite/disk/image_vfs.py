"""A VFS over an image of a disk, in memory: SQLite finds journals and WALs by their names, and recovers.

It tells of the disk what was told when the image came about: SQLite expects of a rollback journal that
its header is as long as it would write it now.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw

from sqlstress.targets.sqlite.disk.device import SECTOR_TOLD, Device
from sqlstress.targets.sqlite.disk.recording_vfs import characteristics
from sqlstress.targets.sqlite.drivers.apsw_driver import ApswConnection

NAME = "sqlstress-image"


class ImageVfs(apsw.VFS):
    """Holds the files of one image at a time; unregistered when it is left."""

    def __init__(self, device: Device) -> None:
        super().__init__(NAME, "")
        self._characteristics = characteristics(device)
        self.files: dict[str, bytearray] = {}
        """What the files hold, by name: as the image had it, then as SQLite has recovered it."""

    def __enter__(self) -> ImageVfs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unregister()

    def load(self, image: Mapping[str, bytes]) -> None:
        """Take another image; every connection to the last one must be closed."""
        self.files = {name: bytearray(data) for name, data in image.items()}

    def connect(self, name: str) -> ApswConnection:
        """Open a database of the image, which is created if it isn't there, as its only user.

        An only user's wal-index is made anew from the WAL in the memory of its process.
        """
        connection = ApswConnection(Path(name), 0, None, NAME)
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
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        flags[1] = flags[0]
        return _ImageFile(self.files.setdefault(path, bytearray()), self._characteristics)


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

    def xSync(self, flags: int) -> None:
        pass

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return SECTOR_TOLD

    def xDeviceCharacteristics(self) -> int:
        return self._characteristics

    def xClose(self) -> None:
        pass
