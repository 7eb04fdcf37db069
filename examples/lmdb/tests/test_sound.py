"""Damage of LMDB's files is found, and a damaged file ends no process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress_lmdb import sound
from sqlstress_lmdb.environments import Held
from sqlstress_lmdb.place import LmdbPlace
from tests.pulses import nothing

ROWS = [[(number, number) for number in range(2000)], []]


@pytest.fixture(autouse=True)
def fill_place(place: LmdbPlace) -> None:
    place.table("int", 8, 1).fill(ROWS, nothing)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20_000])


def overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for page in range(4, len(data) // 4096):
        data[page * 4096 + 64 : page * 4096 + 320] = bytes(range(256))
    path.write_bytes(data)


def another(path: Path) -> None:
    path.write_bytes(b"not what it was" * 1000)


@pytest.mark.parametrize("damage", [cut_off, overwritten, another, Path.unlink])
@pytest.mark.parametrize("small", [sound.SMALL, 0], ids=["here", "apart"])
def test_damage_is_found_and_damaged_files_are_not_read(
    place: LmdbPlace, damage: Callable[[Path], None], small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound, "SMALL", small)
    created = place.schema()
    damage(place.paths[0])
    check = place.integrity("quick", nothing)
    assert (check.status, check.checked) == ("failed", 2)
    assert all(text.startswith("kv_0.mdb: ") for text in check.counterexamples)
    for read in (
        lambda: list(place.table("int", 8, 1).rows(0)),
        lambda: place.redefined(created, nothing),
    ):
        with pytest.raises(sound.Damaged, match=r"after what lmdb\.verify found"):
            read()


def test_unexpected_and_missing_databases_are_found(place: LmdbPlace) -> None:
    created = place.schema()
    assert created == [("counter",), ("kv",)]
    before = place.redefined(created, nothing)
    assert (before.status, before.checked) == ("ok", 4)
    with closing(Held(place.case, place.paths[1])) as held, held.environment.begin(write=True) as txn:
        txn.drop(held.environment.open_db(b"counter", txn=txn))
    after = place.redefined(created, nothing)
    assert after.counterexamples == ("kv_1.mdb lacks the database counter",)
    others = place.redefined([("kv",)], nothing)
    assert others.counterexamples == ("kv_0.mdb holds the database counter, which was added later",)
