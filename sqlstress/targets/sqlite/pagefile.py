"""A database file as pages, read without SQLite: its header, its free list, and which pages are taken.

Never in a process that has a connection to the file: closing it here would drop that one's POSIX
locks. What lies in a WAL is not seen.

Source: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from sqlstress.targets.sqlite.pages import DamagedFile

HEADER = 100
"""Bytes of the file's header, on page 1 before that page's own."""
_MAGIC = b"SQLite format 3\0"
_LOCK_BYTE = 1 << 30
_LEAST_USABLE = 480
_POINTER = 5
"""Bytes of a pointer map for each page."""


class PageFile:
    """The pages of a database, each to be taken once: what two places lead to is damage.

    So no walk is endless, whatever the file holds. Raises DamagedFile.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        header = file.read(HEADER)
        if len(header) < HEADER or not header.startswith(_MAGIC):
            raise DamagedFile("it has no header of SQLite's")
        size, reserved = struct.unpack_from(">H2xB", header, 16)
        self.page_size = 1 << 16 if size == 1 else size
        """Bytes of a page."""
        self.usable = self.page_size - reserved
        """Bytes of a page that SQLite uses."""
        if self.page_size < 512 or self.page_size & (self.page_size - 1) or self.usable < _LEAST_USABLE:
            raise DamagedFile(f"its header says {self.page_size} bytes a page, of them {reserved} reserved")
        self.page_count = self._count_pages(header)
        """Pages of the database."""
        self._taken = bytearray(self.page_count + 1)
        self._taken[0] = True  # pages are numbered from 1
        self._set_aside(auto_vacuum=header[52:56] != bytes(4))
        self._read_free_list(*struct.unpack_from(">II", header, 32))

    def _count_pages(self, header: bytes) -> int:
        in_file = self._file.seek(0, os.SEEK_END) // self.page_size
        # An SQLite before 3.7.0 left the count as it was, and did not mark it as valid.
        valid = header[24:28] == header[92:96]
        count = int.from_bytes(header[28:32], "big") if valid else 0
        if count > in_file:
            raise DamagedFile(f"it should have {count} pages and has {in_file}")
        return count or in_file

    def _set_aside(self, auto_vacuum: bool) -> None:
        """Take the page with the lock bytes, and the pointer maps that a file with auto_vacuum has."""
        lock_page = _LOCK_BYTE // self.page_size + 1
        if lock_page <= self.page_count:
            self.claim(lock_page)
        if auto_vacuum:
            for number in range(2, self.page_count + 1, self.usable // _POINTER + 1):
                self.claim(number + 1 if number == lock_page else number)

    def _read_free_list(self, trunk: int, count: int) -> None:
        found = 0
        while trunk:
            data = self.take(trunk)
            number, (trunk, leaves) = trunk, struct.unpack_from(">II", data)
            if leaves > self.usable // 4 - 2:
                raise DamagedFile(f"page {number} of its free list says that it leads to {leaves} pages")
            for leaf in struct.unpack_from(f">{leaves}I", data, 8):
                self.claim(leaf)
            found += 1 + leaves
        if found != count:
            raise DamagedFile(f"its free list should have {count} pages and has {found}")

    def claim(self, number: int) -> None:
        """Take a page without reading it."""
        if not 1 <= number <= self.page_count:
            raise DamagedFile(f"something leads to page {number}, and there are {self.page_count}")
        if self._taken[number]:
            raise DamagedFile(f"page {number} has two uses")
        self._taken[number] = True

    def take(self, number: int) -> bytes:
        """Take a page and return it."""
        self.claim(number)
        return self.read(number)

    def read(self, number: int) -> bytes:
        """Return a page that was taken."""
        self._file.seek((number - 1) * self.page_size)
        return self._file.read(self.page_size)

    def check_all_taken(self) -> None:
        """Raise when pages are neither used nor free."""
        lost = self._taken.count(False)
        if lost:
            raise DamagedFile(f"{lost} of its {self.page_count} pages are neither used nor free")
