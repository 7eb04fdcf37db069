"""What programs ask of a disk, in the order in which they ask it: a log is a list of these.

A file is a number, as an inode is: a name leads to it, and it outlives its name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Create:
    """A new, empty file, with an entry in the folder."""

    name: str
    file: int


@dataclass(frozen=True, slots=True)
class Delete:
    """An entry of the folder is removed."""

    name: str


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes are written, beyond the file's end if need be."""

    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    """The file is made this long: cut off, or filled with zeros."""

    file: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """What was written to a file is made durable; its entry in the folder is not."""

    file: int


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """The folder's entries are made durable; what the files hold is not."""


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Nobody asks for anything for a while, and the system makes everything durable by itself."""


Operation = Create | Delete | Write | Truncate | Sync | SyncFolder | WriteBack
