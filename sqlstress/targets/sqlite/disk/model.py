"""Disk: what of the operations so far is durable, and what a power cut may do away with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sqlstress.targets.sqlite.disk.operations import (
    Create,
    Delete,
    Operation,
    Sync,
    SyncFolder,
    Truncate,
    Write,
    WriteBack,
)


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
