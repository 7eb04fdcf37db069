"""What every store must do, whatever its driver, its layout and the way in which it waits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.partition import bucket_of
from sqlstress.report.case import BEGINS, BUSY_POLICIES, Case
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import DRIVERS, explain
from sqlstress.targets.views import Store
from tests.targets.conftest import case_of, layouts
from tests.targets.filled import contents, create, create_file, locked, open_store

PRELOADED = {key: -key for key in range(30)}
Open = Callable[..., Store]


@pytest.fixture(params=layouts(sorted(DRIVERS)))
def case(request: pytest.FixtureRequest) -> Case:
    """A case of any driver: what a store must do, all of them do."""
    return case_of(*request.param)


@pytest.fixture
def open_view(case: Case, tmp_path: Path) -> Iterator[Open]:
    """Open views of one preloaded store, each as a worker of its own would."""
    create(case, tmp_path, PRELOADED)
    workers = itertools.count(1)
    with ExitStack() as opened:

        def open_view(begin: str = "immediate", busy: str = "default") -> Store:
            load, own_settings = replace(case.spec, begin=begin), replace(case.settings, busy=busy)
            own = replace(case, spec=load, settings=own_settings)
            store = open_store(own, tmp_path, next(workers))
            opened.callback(store.close)
            return store

        yield open_view


@pytest.fixture
def store(open_view: Open) -> Store:
    return open_view()


@pytest.fixture
def neighbours(case: Case) -> list[int]:
    """Keys that lie in one bucket with key 0."""
    together = [key for key in PRELOADED if bucket_of(key, case.buckets) == bucket_of(0, case.buckets)]
    assert len(together) >= 3
    return together


def get(store: Store, case: Case, key: int) -> Any:
    return store.gets[bucket_of(key, case.buckets)]((key,))


def put(store: Store, case: Case, key: int, value: int) -> None:
    store.puts[bucket_of(key, case.buckets)]((key, value))


def test_there_is_one_of_each_operation_for_each_bucket(case: Case, store: Store) -> None:
    for operations in (store.gets, store.pairs, store.puts, store.batches, store.updates):
        assert len(operations) == case.buckets


def test_a_get_finds_what_was_preloaded_in_its_own_bucket(case: Case, store: Store) -> None:
    assert {key: get(store, case, key) for key in PRELOADED} == PRELOADED


def test_a_get_of_a_key_that_is_not_there_is_none(case: Case, store: Store) -> None:
    assert get(store, case, 99) is None


def test_a_put_replaces_for_everybody_at_once(case: Case, store: Store, open_view: Open) -> None:
    other = open_view()
    for key in (0, 1, 2, 99):
        put(store, case, key, 1000 + key)
    assert [get(other, case, key) for key in (0, 1, 2, 3, 99)] == [1000, 1001, 1002, -3, 1099]


def test_a_batch_is_there_as_a_whole(
    case: Case, store: Store, open_view: Open, neighbours: list[int]
) -> None:
    other = open_view()
    store.batches[bucket_of(0, case.buckets)]([(key, 1000 + key) for key in neighbours])
    assert [get(other, case, key) for key in neighbours] == [1000 + key for key in neighbours]


def test_a_batch_that_fails_halfway_leaves_nothing(
    case: Case, store: Store, open_view: Open, neighbours: list[int], tmp_path: Path
) -> None:
    rows: list[tuple[int, object]] = [(key, 1000 + key) for key in neighbours]
    rows[2] = (neighbours[2], object())
    with pytest.raises(Exception, match=r"(?i)bind|type"):
        store.batches[bucket_of(0, case.buckets)](rows)
    assert {key: value for found in contents(case, tmp_path) for key, value in found.items()} == PRELOADED
    put(open_view(), case, 0, 7)
    assert get(store, case, 0) == 7


def test_a_pair_is_both_rows(case: Case, store: Store, neighbours: list[int]) -> None:
    first, second = neighbours[:2]
    put(store, case, second, 77)
    rows = store.pairs[bucket_of(0, case.buckets)]((first, second))
    assert sorted(map(tuple, rows)) == sorted([(first, -first), (second, 77)])


def test_an_update_adds_one_to_its_counter_alone(case: Case, store: Store, tmp_path: Path) -> None:
    last = case.buckets - 1
    for counter in (0, 3, 3, COUNTERS - 1):
        store.updates[last]((counter,))
    untouched = dict.fromkeys(range(COUNTERS), 0)
    *others, found = contents(case, tmp_path, "SELECT id, n FROM counter")
    assert found == {**untouched, 0: 1, 3: 2, COUNTERS - 1: 1}
    assert others == [untouched] * last


@pytest.mark.parametrize("begin", BEGINS)
def test_a_transaction_of_several_statements_begins_as_the_case_says(
    case: Case, open_view: Open, tmp_path: Path, begin: str
) -> None:
    """Whoever begins at once is refused while another writes; who defers is refused at the write."""
    store = open_view(begin)
    bucket = bucket_of(0, case.buckets)
    seen: list[object] = []

    def rows() -> Iterator[tuple[int, int]]:
        seen.append("begun")
        yield 0, 1

    with locked(case, files.paths(case, tmp_path)[bucket]), pytest.raises(Exception) as refused:
        store.batches[bucket](rows())
    error: Any = refused.value
    assert store.was_busy(error)
    assert seen == (["begun"] if begin == "deferred" else [])


@pytest.mark.parametrize("busy", BUSY_POLICIES)
@pytest.mark.parametrize(("name", "params"), [("puts", (0, 5)), ("batches", [(0, 5)]), ("updates", (0,))])
def test_a_write_that_finds_the_lock_taken_is_busy_and_is_counted(
    case: Case, open_view: Open, tmp_path: Path, name: str, params: Any, busy: str
) -> None:
    store, bucket = open_view(busy=busy), bucket_of(0, case.buckets)
    write = getattr(store, name)[bucket]
    assert store.busy_counts() == (0, 0)
    with locked(case, files.paths(case, tmp_path)[bucket]):
        with pytest.raises(Exception) as refused:
            write(params)
        assert get(store, case, 0) == 0
    error: Any = refused.value
    assert store.was_busy(error)
    assert explain(case.driver, error).startswith("SQLITE_BUSY: ")
    assert store.busy_counts()[0] > 0
    assert store.busy_counts()[1] == 0
    write(params)


def test_a_broken_file_is_explained_and_is_not_busy(case: Case, store: Store, tmp_path: Path) -> None:
    bucket = bucket_of(0, case.buckets)
    with files.opened(case, files.paths(case, tmp_path)[bucket]) as other:
        other.rows("DROP TABLE kv")
    with pytest.raises(Exception) as failed:
        get(store, case, 0)
    error: Any = failed.value
    assert not store.was_busy(error)
    assert explain(case.driver, error).startswith("SQLITE_ERROR: ")
    assert "no such table: kv" in explain(case.driver, error)
    assert explain(case.driver, OSError("disk on fire")) == "OSError: disk on fire"
    assert store.busy_counts() == (0, 0)


def test_the_settings_in_force_are_read_back(store: Store) -> None:
    effective = store.effective()
    assert effective["journal_mode"] == "wal"
    assert effective["synchronous"] == "off"
    assert effective["wal_autocheckpoint"] == "8"


def test_a_closed_store_answers_no_more(case: Case, store: Store) -> None:
    store.close()
    with pytest.raises(Exception, match=r"closed|Cannot operate"):
        get(store, case, 0)


def test_files_that_differ_are_both_named_in_the_settings(case: Case, tmp_path: Path) -> None:
    case = replace(case, buckets=2)
    for path, size in zip(files.paths(case, tmp_path), (4096, 8192), strict=True):
        create_file(replace(case, settings=replace(case.settings, page_size=size)), path, ()).close()
    with closing(open_store(case, tmp_path)) as store:
        assert store.effective()["page_size"] == "4096 / 8192"
