"""What a power cut leaves of a disk: a pure model of files, of folder entries and of syncs.

A log of operations is applied to a Disk, which knows what is durable and what is not yet. What becomes of
the rest is a fate, and an image is the files that remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

# What programs ask of a disk, in the order in which they ask it: a log is a list of these.
#
# A file is a number, as an inode is: a name leads to it, and it outlives its name.


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


@dataclass(frozen=True, slots=True)
class Extend:
    """A file's new length. It may be durable before what is written there is: then anything stands there."""

    file: int
    size: int


Effect = Create | Delete | Write | Truncate | Extend
"""What becomes durable as a whole or not at all: a sector of a write, a length, an entry of the folder."""

Filler = Callable[[int], bytes]
"""Returns so many bytes: what stands where a file was extended and nothing was written yet."""


class Disk:
    """A folder on a disk, empty at first, as it is after some operations."""

    def __init__(self) -> None:
        self._durable: dict[int, bytearray] = {}
        """What of each file is durable, whether it has a name or not."""
        self._entries: dict[str, int] = {}
        """Names that are durable, and their files."""
        self._sizes: dict[int, int] = {}
        """How long each file is for who reads it now."""
        self._unsynced: list[Effect] = []

    def apply(self, operation: Operation) -> None:
        match operation:
            case Sync(file):
                self._make_durable(
                    lambda effect: not isinstance(effect, Create | Delete) and effect.file == file
                )
            case SyncFolder():
                self._make_durable(lambda effect: isinstance(effect, Create | Delete))
                self._forget_files_without_a_name()
            case WriteBack():
                self._make_durable(lambda effect: True)
                self._forget_files_without_a_name()
            case Create(_, file):
                self._sizes[file], self._durable[file] = 0, bytearray()
                self._unsynced.append(operation)
            case Truncate(file, size):
                self._sizes[file] = size
                self._unsynced.append(operation)
            case Write(file, offset, data):
                if (end := offset + len(data)) > self._sizes[file]:
                    self._sizes[file] = end
                    self._unsynced.append(Extend(file, end))
                self._unsynced.append(operation)
            case Delete():
                self._unsynced.append(operation)

    def unsynced(self, sector: int) -> list[Effect]:
        """Return what is not durable yet, in the order in which it was asked for.

        A write is one effect for each sector of so many bytes that it touches: the sector as it is then,
        with all that was written to it before.
        """
        files = {file: bytearray(data) for file, data in self._durable.items()}
        effects: list[Effect] = []
        for effect in self._unsynced:
            _carry_out(effect, files, {}, bytes)
            if isinstance(effect, Write):
                content, end = files[effect.file], effect.offset + len(effect.data)
                for offset in range(effect.offset // sector * sector, end, sector):
                    effects.append(Write(effect.file, offset, bytes(content[offset : offset + sector])))
            else:
                effects.append(effect)
        return effects

    def image(self, kept: Iterable[Effect], filler: Filler = bytes) -> dict[str, bytes]:
        """Return what the files hold, by name, if of what was not durable only these effects became it."""
        kept, entries = list(kept), dict(self._entries)
        for effect in kept:
            _carry_out(effect, {}, entries, bytes)
        files = {file: bytearray(self._durable[file]) for file in entries.values()}
        for effect in kept:
            _carry_out(effect, files, {}, filler)
        return {name: bytes(files[file]) for name, file in entries.items()}

    def _make_durable(self, chosen: Callable[[Effect], bool]) -> None:
        for effect in filter(chosen, self._unsynced):
            _carry_out(effect, self._durable, self._entries, bytes)
        self._unsynced = [effect for effect in self._unsynced if not chosen(effect)]

    def _forget_files_without_a_name(self) -> None:
        """Drop what can be in no image any more: all entries are durable by now."""
        named = set(self._entries.values())
        self._unsynced = [
            effect for effect in self._unsynced if not isinstance(effect, Delete) and effect.file in named
        ]
        self._durable = {file: data for file, data in self._durable.items() if file in named}


def _carry_out(effect: Effect, files: dict[int, bytearray], entries: dict[str, int], filler: Filler) -> None:
    """Do to files, those of them that are there, and to the folder's entries what an effect does."""
    match effect:
        case Create(name, file):
            entries[name] = file
        case Delete(name):
            entries.pop(name, None)
        case Write(file, offset, data) if file in files:
            content = files[file]
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
        case Truncate(file, size) if file in files:
            content = files[file]
            del content[size:]
            content.extend(bytes(size - len(content)))
        case Extend(file, size) if file in files:
            content = files[file]
            content.extend(filler(max(0, size - len(content))))


# Device: what a disk does with a sector that is being written when power fails, and what SQLite is told.


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


# Fates: which of the effects that were not durable at a power cut became it nevertheless.
#
# Nothing says in which order a disk, and the system's cache above it, carry out what was not synced: any
# choice of the effects is possible. These choices are drawn so that each kind of accident is met often.


Fate = Callable[[int, Random], list[bool]]
"""(number of effects, random stream) → for each of them, in their order, whether it became durable."""


def up_to_a_point(effects: int, random: Random) -> list[bool]:
    """Return that all of it was carried out in order, and a point at which it was broken off."""
    done = random.randint(0, effects)
    return [True] * done + [False] * (effects - done)


def all_but_one(effects: int, random: Random) -> list[bool]:
    """Return that one is lost, whatever followed it."""
    kept = [True] * effects
    if effects:
        kept[random.randrange(effects)] = False
    return kept


def at_random(effects: int, random: Random) -> list[bool]:
    """Return a share drawn anew for each image: few of them, about half, or most, in no order."""
    share = random.choice((0.1, 0.5, 0.9))
    return [random.random() < share for _ in range(effects)]


FATES: dict[str, Fate] = {
    "nothing": lambda effects, random: [False] * effects,
    "everything": lambda effects, random: [True] * effects,  # as after the death of a process
    "up to a point": up_to_a_point,
    "all but one": all_but_one,
    "only one": lambda effects, random: [not kept for kept in all_but_one(effects, random)],
    "at random": at_random,
}
"""By the name that a report gives them."""
