"""LMDB's settings and read-back values, and the limits of its map and its readers."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext
from dataclasses import replace

import pytest

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.report.case import MAX_CONCURRENCY, SYNCHRONOUS, Server
from sqlstress.target import LAST_LOST, SYNCED, UNSAFE, durability_level
from sqlstress.targets.place import Place
from sqlstress_lmdb import environments
from sqlstress_lmdb.place import LmdbPlace
from sqlstress_lmdb.target import TARGET
from tests.pulses import nothing


def at(place: LmdbPlace, **settings: object) -> LmdbPlace:
    """Return the place of a case with other settings, filled."""
    case = replace(place.case, settings=replace(place.case.settings, **settings))  # type: ignore[arg-type]
    other = LmdbPlace(case, place.where)
    other.table("int", 8, 0).fill([[(1, 10)], [(2, 20)]], nothing)
    return other


@pytest.mark.parametrize(
    ("level", "flags", "told"),
    [
        ("full", ("on", "on"), SYNCED),
        (None, ("on", "on"), SYNCED),
        ("normal", ("on", "off"), LAST_LOST),
        ("off", ("off", "off"), UNSAFE),
    ],
)
def test_level_is_how_an_environment_syncs_and_is_read_back_from_it(
    place: LmdbPlace, level: str | None, flags: tuple[str, str], told: str
) -> None:
    other = at(place, synchronous=level)
    with closing(other.keyvalue(1, "immediate", None)) as store:
        effective = store.effective()
    assert (effective["sync"], effective["metasync"]) == flags
    assert effective["synchronous"] == (level or "full")
    assert list(other.differences(effective)) == []
    assert durability_level(TARGET.durability(other.case, effective)) == told
    assert TARGET.durability(other.case, {}) == ""


def test_levels_and_pragmas_that_are_sqlites_are_refused(place: LmdbPlace) -> None:
    for level in SYNCHRONOUS:
        case = replace(place.case, settings=replace(place.case.settings, synchronous=level))
        with nullcontext() if level != "extra" else pytest.raises(UsageError, match="extra is not to be had"):
            assert TARGET.checked(case, Server(), anyway=False).settings.synchronous == level
    with pytest.raises(UsageError, match="PRAGMA foreign_keys is SQLite's"):
        settings = replace(place.case.settings, pragmas=(("foreign_keys", "on"),))
        TARGET.checked(replace(place.case, settings=settings), Server(), anyway=False)


def test_full_map_says_what_to_do_and_loses_nothing(
    place: LmdbPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "map_size", lambda case: 1 << 16)
    table = place.table("int", 16, 0)
    table.fill([[(1, b"kept")], []], nothing)
    case = replace(place.case, spec=replace(place.case.spec, value_size=16))
    with closing(LmdbPlace(case, place.where).keyvalue(1, "immediate", None)) as store:
        with pytest.raises(Exception, match="MDB_MAP_FULL") as full:
            store.puts[0]((2, bytes(1 << 17)))
        error: BaseException = full.value
        assert isinstance(error, Exception)
        assert TARGET.foresees(error)
        assert TARGET.explain("lmdb", error).endswith("over more --buckets)")
        assert not store.was_busy(error)
        store.puts[0]((3, b"goes on"))
    assert list(table.rows(0)) == [(1, b"kept"), (3, b"goes on")]


def test_all_processes_that_a_case_may_have_can_read_at_once(place: LmdbPlace) -> None:
    crowd = replace(place.case, buckets=1, concurrency=MAX_CONCURRENCY)
    other = LmdbPlace(crowd, place.where)
    other.table("int", 8, 0).fill([[(1, 10)]], nothing)
    with closing(environments.Held(crowd, other.paths[0])) as held:
        readers = [held.environment.begin() for _ in range(MAX_CONCURRENCY + 1)]
        assert held.environment.info()["num_readers"] > MAX_CONCURRENCY
        for reader in readers:
            reader.abort()


@pytest.mark.thorough
def test_map_is_larger_than_whatever_a_case_may_hold(place: LmdbPlace) -> None:
    load = replace(place.case.spec, key_space=3000, key_type="text", batch=1000)
    for size in (8, 500, 3000, 70_000):
        case = replace(place.case, buckets=1, spec=replace(load, value_size=size))
        other = LmdbPlace(case, place.where)
        value = 7 if size == 8 else bytes(size)
        rows = [(f"key{number:012}", value) for number in range(load.key_space)]
        other.table("text", size, 0).fill([rows], nothing)
        with closing(other.keyvalue(1, "immediate", None)) as store:
            for start in range(0, load.key_space, load.batch):
                store.batches[0](rows[start : start + load.batch])
        other.discard()


def test_process_opens_an_environment_once_until_its_last_user_closes(place: LmdbPlace) -> None:
    table = place.table("int", 8, 0)
    table.fill([[(1, 10)], []], nothing)
    one, other = (place.keyvalue(worker, "immediate", None) for worker in (1, 2))
    one.close()
    assert other.gets[0]((1,)) == 10
    other.close()
    assert environments._OPEN == {}


def test_missing_file_is_not_created_again(place: LmdbPlace) -> None:
    with pytest.raises(EnvironmentFailure, match=r"cannot open kv_0\.mdb: the file is not there"):
        place.keyvalue(1, "immediate", None)
    assert list(place.where.iterdir()) == []
    assert environments._OPEN == {}


def test_missing_binding_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(UsageError, match=r"pip install lmdb, or choose another --driver"):
        TARGET.describe("lmdb")


def test_there_is_no_loop_in_c(place: LmdbPlace) -> None:
    filled: Place = place
    with pytest.raises(EnvironmentFailure, match="--loop python"):
        filled.native(1, "immediate")
