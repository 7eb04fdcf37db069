"""What a power cut leaves of a disk: a pure model of files, of folder entries and of syncs.

A log of operations (operations.py) is applied to a Disk (disk.py), which knows what is durable and
what is not yet. What becomes of the rest is a fate (fates.py), and an image is the files that remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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


# Disk: what of the operations so far is durable, and what a power cut may do away with.


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
        """Take in one more operation."""
        match operation:
            case Sync(file):
                self._make_durable(lambda effect: _is_of(effect, file))
            case SyncFolder():
                self._make_durable(lambda effect: isinstance(effect, Create | Delete))
                self._forget_files_without_a_name()
            case WriteBack():
                self._make_durable(lambda effect: True)
                self._forget_files_without_a_name()
            case _:
                self._unsynced += self._effects(operation)

    def unsynced(self, sector: int) -> list[Effect]:
        """Return what is not durable yet, in the order in which it was asked for.

        A write is one effect for each sector of so many bytes that it touches: the sector as it is then,
        with all that was written to it before.
        """
        seen = {file: bytearray(data) for file, data in self._durable.items()}
        found: list[Effect] = []
        for effect in self._unsynced:
            _carry_out(seen, effect, bytes)
            found += _sectors(effect, seen, sector) if isinstance(effect, Write) else [effect]
        return found

    def image(self, kept: Iterable[Effect], filler: Filler = bytes) -> dict[str, bytes]:
        """Return what the files hold, by name, if of what was not durable only these effects became it."""
        kept, entries = list(kept), dict(self._entries)
        for effect in kept:
            _enter(entries, effect)
        files = {file: bytearray(self._durable[file]) for file in entries.values()}
        for effect in kept:
            _carry_out(files, effect, filler)
        return {name: bytes(files[file]) for name, file in entries.items()}

    def _effects(self, operation: Create | Delete | Write | Truncate) -> Iterator[Effect]:
        match operation:
            case Create(_, file):
                self._sizes[file], self._durable[file] = 0, bytearray()
            case Truncate(file, size):
                self._sizes[file] = size
            case Write(file, offset, data) if offset + len(data) > self._sizes[file]:
                self._sizes[file] = offset + len(data)
                yield Extend(file, offset + len(data))
        yield operation

    def _make_durable(self, chosen: Callable[[Effect], bool]) -> None:
        left = []
        for effect in self._unsynced:
            if chosen(effect):
                _enter(self._entries, effect)
                _carry_out(self._durable, effect, bytes)
            else:
                left.append(effect)
        self._unsynced = left

    def _forget_files_without_a_name(self) -> None:
        """Drop what can be in no image any more: all entries are durable by now."""
        named = set(self._entries.values())
        self._unsynced = [effect for effect in self._unsynced if _file(effect) in named]
        self._durable = {file: data for file, data in self._durable.items() if file in named}


def _file(effect: Effect) -> int | None:
    return None if isinstance(effect, Delete) else effect.file


def _is_of(effect: Effect, file: int) -> bool:
    return isinstance(effect, Write | Truncate | Extend) and effect.file == file


def _sectors(written: Write, files: dict[int, bytearray], sector: int) -> Iterator[Write]:
    """Yield the sectors that a write touches, as they are in `files`."""
    begin, end = written.offset // sector * sector, written.offset + len(written.data)
    content = files[written.file]
    for offset in range(begin, end, sector):
        yield Write(written.file, offset, bytes(content[offset : offset + sector]))


def _enter(entries: dict[str, int], effect: Effect) -> None:
    """Carry out what an effect does to the folder."""
    if isinstance(effect, Create):
        entries[effect.name] = effect.file
    elif isinstance(effect, Delete):
        entries.pop(effect.name, None)


def _carry_out(files: dict[int, bytearray], effect: Effect, filler: Filler) -> None:
    """Carry out what an effect does to a file, if it is one of these."""
    match effect:
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


def nothing(effects: int, random: Random) -> list[bool]:
    """Return that all of it is lost."""
    return [False] * effects


def everything(effects: int, random: Random) -> list[bool]:
    """Return that all of it is there, as after the death of a process."""
    return [True] * effects


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


def only_one(effects: int, random: Random) -> list[bool]:
    """Return that one is there, whatever preceded it."""
    return [not keep for keep in all_but_one(effects, random)]


def at_random(effects: int, random: Random) -> list[bool]:
    """Return a share drawn anew for each image: few of them, about half, or most, in no order."""
    share = random.choice((0.1, 0.5, 0.9))
    return [random.random() < share for _ in range(effects)]


FATES: dict[str, Fate] = {
    "nothing": nothing,
    "everything": everything,
    "up to a point": up_to_a_point,
    "all but one": all_but_one,
    "only one": only_one,
    "at random": at_random,
}
"""By the name that a report gives them."""
