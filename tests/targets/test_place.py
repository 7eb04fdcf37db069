"""Behaviour required of every target's place; unsupported parts are absent.

A target is tested if it is in TARGETS. Checks that need files, such as that of exchanged files, run only for
targets that keep files.
"""

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Server, Settings
from sqlstress.target import drivers
from sqlstress.targets import dry, file_patterns, open_place, postgres, sqlite, target_of
from sqlstress.targets.place import Place
from sqlstress.targets.sqlite.drivers import DRIVERS
from sqlstress.targets.views import Store, TableView
from tests.pulses import nothing, stopped_everywhere
from tests.targets.filled import exchange

COUNTERS = 3
ROWS = [[(1, 10), (2, 20)], [(3, 30)]]
TARGETS = {"sqlite": sqlite.TARGET, "postgres": postgres.TARGET, "dry": dry.TARGET}
"""All targets in this repository."""

KNOWN = drivers()

MODULES = {name: name for name in ("apsw", "lmdb", "peewee", "psycopg", "sqlite3")}
"""Driver → its module. A driver that is missing here fails, because it would be skipped unnoticed."""


KEEPING = [driver for driver in sorted(KNOWN) if KNOWN[driver].stores]
FORGETFUL = [driver for driver in sorted(KNOWN) if not KNOWN[driver].stores]


@pytest.fixture(params=[*KEEPING, *FORGETFUL])
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(request.param, request)


def case_of(driver: str, request: pytest.FixtureRequest) -> Case:
    if KNOWN[driver].stores:
        pytest.importorskip(MODULES[driver])
    server = None
    if KNOWN[driver].serves:
        request.getfixturevalue("our_server")
        server = Server()
    settings = Settings(synchronous="off", wal_autocheckpoint=8, busy_timeout_ms=0)
    return Case(driver=driver, buckets=2, settings=settings, server=server, spec=Load(key_space=4))


@pytest.fixture(params=KEEPING)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place that stores data; its folder also has a foreign file."""
    return place_in(tmp_path, request)


@pytest.fixture(params=FORGETFUL)
def forgetful(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place that stores nothing."""
    return place_in(tmp_path, request)


def place_in(folder: Path, request: pytest.FixtureRequest) -> Place:
    (folder / "somebody-elses").write_text("nothing of ours")
    return open_place(case_of(request.param, request), folder)


@pytest.fixture
def table(place: Place) -> Iterator[TableView]:
    opened = place.table("int", 8, COUNTERS)
    assert opened
    opened.fill(ROWS, nothing)
    yield opened
    opened.release()
    place.discard()


def store_of(place: Place, worker: int = 1) -> Store:
    return place.keyvalue(worker, "immediate", 77)


def test_opening_a_place_touches_nothing(case: Case, tmp_path: Path) -> None:
    place = open_place(case, tmp_path / "nowhere")
    assert (place.case, place.where) == (case, tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


def test_workers_and_parent_see_each_others_rows(place: Place, table: TableView) -> None:
    same = open_place(place.case, place.where)  # as in another process, from plain data
    with closing(store_of(place)) as first, closing(store_of(same, 2)) as second:
        table.release()
        values = [first.gets[bucket]((key,)) for bucket, key in ((0, 1), (0, 2), (1, 3), (1, 1))]
        assert values == [10, 20, 30, None]
        first.batches[0]([(1, 11), (4, 40)])
        second.updates[1]((2,))
        assert second.gets[0]((4,)) == 40
    assert [sorted(table.rows(bucket)) for bucket in (0, 1)] == [[(1, 11), (2, 20), (4, 40)], [(3, 30)]]
    assert table.counters(0) == [(0, 0), (1, 0), (2, 0)]
    assert table.counters(1) == [(0, 0), (1, 0), (2, 1)]
    assert len({table.name(0), table.name(1)}) == 2


def test_table_can_be_recreated_empty(place: Place, table: TableView) -> None:
    table.release()
    table.create(nothing)
    assert [list(table.rows(bucket)) for bucket in (0, 1)] == [[], []]
    assert place.integrity("full", nothing) or place.case.server


def test_preparation_can_be_interrupted_and_restarted(place: Place, table: TableView) -> None:
    table.release()
    assert stopped_everywhere(lambda pulse: table.fill(ROWS, pulse)) >= 2
    assert sorted(table.rows(0)) == ROWS[0]


def test_changed_setting_is_a_difference_from_the_requested_one(place: Place, table: TableView) -> None:
    with closing(store_of(place)) as store:
        effective = store.effective()
    assert effective
    assert list(place.differences(effective)) == []
    name = "synchronous" if "synchronous" in effective else "synchronous_commit"
    assert list(place.differences({**effective, name: "full"})) == [(name, effective[name], "full")]


@pytest.mark.parametrize(
    "prepare", [lambda table: table.create(nothing), lambda table: table.fill(ROWS, nothing)]
)
def test_rejected_setting_stops_the_preparation(place: Place, prepare: Callable[[TableView], None]) -> None:
    if place.case.server:
        return  # it has no PRAGMAs
    settings = replace(place.case.settings, pragmas=(("temp_store", "memroy"),))
    table = open_place(replace(place.case, settings=settings), place.where).table("int", 8, 0)
    assert table
    with pytest.raises((UsageError, EnvironmentFailure), match="temp_store"):
        prepare(table)
    table.release()


def test_sound_place_passes_integrity_and_schema_checks(place: Place, table: TableView) -> None:
    created = place.schema()
    for level in ("quick", "full"):
        check = place.integrity(level, nothing)
        if place.case.server:
            assert check is None  # a server checks its data itself
        else:
            assert check and (check.status, check.checked) == ("ok", 2)
    check = place.redefined(created, nothing)
    assert (check is not None) == bool(created)
    assert check is None or check.status == "ok"


def test_writes_of_workers_keep_seal_and_snapshot_intact(place: Place, table: TableView) -> None:
    before = place.snapshot(nothing)
    with closing(store_of(place)) as store:
        seal = place.seal()
        store.puts[0]((1, 11))
        assert seal is None or seal.broken() is None
    table.release()
    if before:
        assert (before.exchanged(), before.changed(nothing)) == (None, None)


def data_in(folder: Path) -> list[Path]:
    """Return the files with data, sorted."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".db", ".mdb"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody exchange a file that is in use")
def test_exchanged_file_breaks_seal_and_snapshot(place: Place, table: TableView) -> None:
    files = data_in(place.where)
    if not files:
        return  # it has no file that could be exchanged
    before = place.snapshot(nothing)
    with closing(store_of(place)):
        seal = place.seal()
        assert seal and before
        exchange(files[1])
        for reason in (seal.broken(), before.exchanged()):
            assert reason == f"{files[1].name} was replaced by another file"


def test_damage_is_found(place: Place, table: TableView) -> None:
    files = data_in(place.where)
    if not files:
        return  # it has no file that could be damaged
    table.release()
    files[0].write_bytes(b"not what it was" * 1000)
    check = place.integrity("quick", nothing)
    assert check and check.status == "failed"
    assert files[0].name in check.counterexamples[0]


def test_discard_removes_own_files_only(place: Place, table: TableView) -> None:
    with closing(store_of(place)) as store:
        store.puts[0]((1, 11))
    table.release()
    place.discard()
    assert [path.name for path in place.where.iterdir()] == ["somebody-elses"]
    place.discard()


def test_files_of_a_place_match_the_pattern_of_its_target(place: Place, table: TableView) -> None:
    pattern = target_of(place.case.driver).FILES
    with closing(store_of(place)):
        left = {path.name for path in place.where.iterdir()} - {"somebody-elses"}
    assert pattern is None or all(re.fullmatch(pattern, name) for name in left)
    assert bool(left) == (pattern is not None)


def test_dry_place_has_no_data_and_fixed_answers(forgetful: Place) -> None:
    place = forgetful
    absent = (
        place.table("int", 8, COUNTERS),
        place.seal(),
        place.snapshot(nothing),
        place.integrity("full", nothing),
        place.redefined((), nothing),
    )
    assert absent == (None,) * 5
    assert (list(place.schema()), list(place.differences({"synchronous": "off"}))) == ([], [])
    store = store_of(place)
    operations = (store.gets, store.pairs, store.puts, store.batches, store.updates)
    assert [*map(len, operations)] == [place.case.buckets] * len(operations)
    store.puts[1]((1, 10))
    store.batches[1]([(1, 10)])
    store.updates[1]((1,))
    assert (store.gets[1]((1,)), store.pairs[1]((1, 2))) == (77, [(1, 77), (2, 77)])
    assert (store.was_busy(Exception()), store.busy_counts(), store.effective()) == (False, (0, 0), {})
    store.close()
    place.discard()
    assert [path.name for path in place.where.iterdir()] == ["somebody-elses"]


def test_drivers_and_targets_agree_on_storage(tmp_path: Path) -> None:
    assert {known.target for known in KNOWN.values() if not known.package} == set(TARGETS)
    assert {name for name, known in KNOWN.items() if known.target == "sqlite"} == set(DRIVERS)
    for driver, known in KNOWN.items():
        target = target_of(driver)
        assert known.package or target is TARGETS[known.target]
        assert (target.DESCRIPTORS > 0) == known.stores
        if not known.stores or importlib.util.find_spec(MODULES[driver]):
            assert target.open_place(Case(driver=driver), tmp_path).stores == known.stores


def test_target_describes_the_library_of_its_driver(case: Case) -> None:
    build = target_of(case.driver).describe(case.driver)
    assert (build.driver if build else None) == (
        None if KNOWN[case.driver].serves or not KNOWN[case.driver].stores else case.driver
    )
    assert not build or (build.library in ("SQLite", "LMDB") and build.version[0].isdecimal())


def test_target_explains_errors_of_drivers_and_of_the_system(case: Case, tmp_path: Path) -> None:
    target, driver = target_of(case.driver), case.driver
    assert target.explain(driver, UsageError("choose another one")) == "choose another one"
    assert target.explain(driver, MemoryError()) == "out of memory"
    assert target.explain(driver, OSError("disk on fire")) == "OSError: disk on fire"
    assert not target.foresees(KeyError("x"))
    if KNOWN[driver].stores:
        with pytest.raises(EnvironmentFailure, match="cannot open"):
            store_of(open_place(case, tmp_path / "missing"))


def test_file_patterns_cover_all_targets() -> None:
    package_patterns = {target_of(name).FILES for name, known in KNOWN.items() if known.package}
    assert [pattern for pattern in file_patterns() if pattern not in package_patterns] == [
        sqlite.TARGET.FILES
    ]
