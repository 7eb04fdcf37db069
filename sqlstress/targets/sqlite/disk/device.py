"""Device: what a disk does with a sector that is being written when power fails, and what SQLite is told."""

from __future__ import annotations

from dataclasses import dataclass

SECTORS = (512, 4096)
"""Bytes that become durable as a whole or not at all: both are common, so both are tried."""

SECTOR_TOLD = 4096
"""Sector size that SQLite is told, as its own VFSs tell it; no smaller than a true one."""


@dataclass(frozen=True, slots=True)
class Device:
    """A disk. None is taken to write more than a sector at once, or to keep any order of writes.

    Nor is what was appended to a file taken to be there before the file's new length is.
    """

    spoils: bool = False
    """Whether a sector that is being written when power fails may hold anything afterwards."""
    told_powersafe: bool = True
    """Whether SQLite is told that bytes beside those written stay as they are (psow), as by default it is."""
