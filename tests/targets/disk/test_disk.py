"""The model of a disk keeps its promises, and makes no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.targets.sqlite.disk_model import (
    FATES,
    Create,
    Delete,
    Disk,
    Effect,
    Extend,
    Operation,
    Sync,
    SyncFolder,
    Truncate,
    Write,
    WriteBack,
)

# Logs of disk operations, and a plain model of what they do.


NAMES = ("a", "b", "c")
MOST_BYTES = 40
SECTOR = 8


@dataclass
class Plain:
    """What programs see, and what they were promised: nothing clever."""

    names: dict[str, int] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    safe_names: dict[str, int] = field(default_factory=dict)
    safe_files: dict[int, bytes] = field(default_factory=dict)

    def do(self, operation: Operation) -> None:
        match operation:
            case Create(name, file):
                self.names[name], self.files[file], self.safe_files[file] = file, b"", b""
            case Delete(name):
                del self.names[name]
            case Write(file, offset, data):
                before = self.files[file].ljust(offset, b"\0")
                self.files[file] = before[:offset] + data + before[offset + len(data) :]
            case Truncate(file, size):
                self.files[file] = self.files[file][:size].ljust(size, b"\0")
            case Sync(file):
                self.safe_files[file] = self.files[file]
            case SyncFolder():
                self.safe_names = dict(self.names)
            case WriteBack():
                self.safe_names, self.safe_files = dict(self.names), dict(self.files)

    @property
    def seen(self) -> dict[str, bytes]:
        """What programs see."""
        return {name: self.files[file] for name, file in self.names.items()}

    @property
    def safe(self) -> dict[str, bytes]:
        """What was promised."""
        return {name: self.safe_files[file] for name, file in self.safe_names.items()}


@st.composite
def logs(draw: st.DrawFn) -> list[Operation]:
    """Return a log that makes sense: files are created before they are written to."""
    plain, log = Plain(), list[Operation]()
    for step in range(draw(st.integers(0, 25))):
        operation = draw(st.sampled_from(_possible(plain, draw, step)))
        plain.do(operation)
        log.append(operation)
    return log


def _possible(plain: Plain, draw: st.DrawFn, step: int) -> list[Operation]:
    found: list[Operation] = [SyncFolder(), WriteBack()] if draw(st.booleans()) else []
    for name in NAMES:
        if name not in plain.names:
            found.append(Create(name, step))
            continue
        file = plain.names[name]
        data = bytes([step + 1]) * draw(st.integers(1, MOST_BYTES // 2))
        offset, size = draw(st.integers(0, MOST_BYTES)), draw(st.integers(0, MOST_BYTES))
        found += [Write(file, offset, data)] * 3 + [Truncate(file, size), Sync(file), Delete(name)]
    return found


SEEDS = st.integers(0, 999)


def after(log: Sequence[Operation]) -> tuple[Disk, Plain]:
    disk, plain = Disk(), Plain()
    for operation in log:
        disk.apply(operation)
        plain.do(operation)
    return disk, plain


def some(effects: list[Effect], seed: int, fate: str = "at random") -> list[Effect]:
    chosen = FATES[fate](len(effects), Random(seed))
    return [effect for effect, is_kept in zip(effects, chosen, strict=True) if is_kept]


@given(logs(), st.sampled_from((SECTOR, 512)))
def test_an_image_in_which_everything_was_kept_is_what_programs_saw(
    log: list[Operation], sector: int
) -> None:
    disk, plain = after(log)
    assert disk.image(disk.unsynced(sector)) == plain.seen


@given(logs())
def test_an_image_in_which_nothing_was_kept_is_what_was_synced_last(log: list[Operation]) -> None:
    disk, plain = after(log)
    assert disk.image([]) == plain.safe


@given(logs(), SEEDS)
def test_what_was_synced_and_not_touched_since_is_in_every_image(log: list[Operation], seed: int) -> None:
    disk, plain = after(log)
    unsynced = disk.unsynced(SECTOR)
    image = disk.image(some(unsynced, seed))
    changed = {effect.name for effect in unsynced if isinstance(effect, Create | Delete)}
    for name, file in plain.safe_names.items():
        if name in changed:
            continue
        touched = _touched(unsynced, file)
        for place, byte in enumerate(plain.safe_files[file]):
            if place not in touched:
                assert image[name][place] == byte


def _touched(effects: list[Effect], file: int) -> set[int]:
    places: set[int] = set()
    for effect in effects:
        match effect:
            case Write(other, offset, data) if other == file:
                places |= set(range(offset, offset + len(data)))
            case Truncate(other, size) if other == file:
                places |= set(range(size, 1000))
    return places


@given(logs(), SEEDS)
def test_after_the_system_wrote_everything_back_there_is_nothing_to_lose(
    log: list[Operation], seed: int
) -> None:
    disk, plain = after([*log, WriteBack()])
    assert disk.unsynced(SECTOR) == []
    assert disk.image([]) == plain.seen


@given(st.lists(st.tuples(st.integers(0, 31), st.integers(1, 20)), max_size=8), SEEDS)
def test_every_sector_holds_what_it_held_at_some_moment_since_the_sync(
    writes: list[tuple[int, int]], seed: int
) -> None:
    log: list[Operation] = [Create("a", 0), SyncFolder(), Write(0, 0, bytes(64)), Sync(0)]
    disk, plain = after(log)
    moments = [plain.files[0]]
    for number, (offset, length) in enumerate(writes):
        write = Write(0, offset, bytes([number + 1]) * length)
        disk.apply(write)
        plain.do(write)
        moments.append(plain.files[0])
    image = disk.image(some(disk.unsynced(SECTOR), seed))["a"]
    for begin in range(0, 64, SECTOR):
        assert image[begin : begin + SECTOR] in {moment[begin : begin + SECTOR] for moment in moments}


@given(logs(), SEEDS, st.sampled_from(sorted(FATES)))
def test_the_same_seed_gives_the_same_image(log: list[Operation], seed: int, fate: str) -> None:
    one, other = (
        disk.image(some(disk.unsynced(SECTOR), seed, fate), Random(seed).randbytes)
        for disk in (after(log)[0], after(log)[0])
    )
    assert one == other


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("nothing", {0}),
        ("everything", {5}),
        ("all but one", {4}),
        ("only one", {1}),
        ("up to a point", set(range(6))),
        ("at random", set(range(6))),
    ],
)
def test_a_fate_says_of_each_effect_whether_it_is_kept_as_its_name_says(name: str, kept: set[int]) -> None:
    assert {sum(FATES[name](5, Random(seed))) for seed in range(200)} == kept
    for effects in range(50):
        chosen = FATES[name](effects, Random(effects))
        assert len(chosen) == effects
        assert name != "up to a point" or chosen == sorted(chosen, reverse=True)


CREATED: list[Operation] = [Create("a", 0), Write(0, 0, b"old"), Sync(0), SyncFolder()]


def images(log: list[Operation]) -> list[dict[str, bytes]]:
    """Return what is left for every choice of effects."""
    disk, _ = after(log)
    effects = disk.unsynced(512)
    found = []
    for choice in range(1 << len(effects)):
        kept = [effect for place, effect in enumerate(effects) if choice >> place & 1]
        found.append(disk.image(kept, lambda count: b"?" * count))
    return found


@pytest.mark.parametrize(
    ("log", "possible"),
    [
        ([Create("a", 0), Write(0, 0, b"x"), Sync(0)], [{}, {"a": b"x"}]),
        ([*CREATED, Delete("a")], [{"a": b"old"}, {}]),
        ([*CREATED, Delete("a"), SyncFolder()], [{}]),
        ([*CREATED, Truncate(0, 1)], [{"a": b"old"}, {"a": b"o"}]),
        ([*CREATED, Write(0, 0, b"new")], [{"a": b"old"}, {"a": b"new"}]),
        ([*CREATED, Write(0, 3, b"er")], [{"a": b"old"}, {"a": b"old??"}, {"a": b"older"}]),
        (
            [*CREATED, Delete("a"), Create("a", 1)],
            [{"a": b"old"}, {}, {"a": b""}],
        ),
    ],
    ids=[
        "a created file is missing", "a deleted file is back", "a synced deletion is final",
        "a truncation is undone", "a write is undone", "a length is there before the bytes",
        "a file made anew",
    ],
)  # fmt: skip
def test_every_choice_is_possible_and_nothing_else(
    log: list[Operation], possible: list[dict[str, bytes]]
) -> None:
    found = images(log)
    assert [one for one in possible if one not in found] == []
    assert [one for one in found if one not in possible] == []


def test_a_write_at_the_end_is_torn_between_its_sectors() -> None:
    disk, _ = after([*CREATED, Write(0, 0, b"x" * 1024)])
    first, second = (effect for effect in disk.unsynced(512) if isinstance(effect, Write))
    assert disk.image([second])["a"] == b"old".ljust(512, b"\0") + b"x" * 512
    assert disk.image([Extend(0, 1024), first])["a"] == b"x" * 512 + bytes(512)


def test_what_a_deleted_file_holds_is_forgotten_when_its_deletion_is_synced() -> None:
    disk, _ = after([*CREATED, Write(0, 0, b"unsynced"), Delete("a"), SyncFolder()])
    assert disk.unsynced(512) == []
