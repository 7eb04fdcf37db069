"""The store that does nothing looks like one that does."""

from __future__ import annotations

import inspect
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.report.case import Case
from sqlstress.targets.dry.store import DryPlace, DryStore
from sqlstress.targets.sqlite.connections import SqliteStore
from sqlstress.targets.views import Store
from tests.targets.filled import create, open_store

VALUE = object()
OPERATIONS = ("gets", "pairs", "puts", "batches", "updates")


@pytest.fixture
def dry() -> Store:
    return DryPlace(Case(driver="dry", buckets=3), Path("nowhere")).keyvalue(1, "immediate", VALUE)


def names(of: object) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def test_it_has_the_names_of_a_store_that_does_something(case: Case, dry: Store, tmp_path: Path) -> None:
    create(case, tmp_path, {})
    with closing(open_store(case, tmp_path)) as real:
        assert names(dry) == names(real) == names(Store) | set(OPERATIONS)


@pytest.mark.parametrize("name", ["was_busy", "busy_counts", "effective", "close"])
def test_its_methods_take_what_those_of_a_real_store_take(name: str) -> None:
    assert inspect.signature(getattr(DryStore, name)) == inspect.signature(getattr(SqliteStore, name))


def test_it_has_one_of_each_operation_for_each_bucket(dry: Store) -> None:
    assert [len(getattr(dry, name)) for name in OPERATIONS] == [3] * len(OPERATIONS)


def test_it_answers_every_get_with_the_value_it_was_given(dry: Store) -> None:
    for bucket in range(3):
        assert dry.gets[bucket]((7,)) is VALUE
        assert dry.pairs[bucket]((7, 8)) == [(7, VALUE), (8, VALUE)]


def test_it_forgets_every_write(dry: Store) -> None:
    dry.puts[0]((7, "forgotten"))
    dry.batches[0]([(7, "forgotten")])
    dry.updates[0]((1,))
    assert dry.gets[0]((7,)) is VALUE


def test_it_is_never_busy_and_has_no_settings(dry: Store) -> None:
    assert not dry.was_busy(Exception())
    assert dry.busy_counts() == (0, 0)
    assert dry.effective() == {}
    dry.close()
