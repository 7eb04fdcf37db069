"""Behaviour required of every store, for each target, driver and layout."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.report.case import BEGIN_MODES, Case
from sqlstress.targets import target_of
from sqlstress.targets.postgres.dialect import dsn_of, schema_of
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import DRIVERS
from tests.rows import thorough
from tests.targets.conftest import Open, any_case, case_of, layouts
from tests.targets.filled import create_file, locked, open_store
from tests.targets.like_a_dict import check_store


@pytest.fixture(params=[*layouts(sorted(DRIVERS)), pytest.param(("psycopg", 2), id="psycopg-2")])
def case(request: pytest.FixtureRequest) -> Case:
    return any_case(request.param[0], request, request.param[1])


@contextmanager
def write_locks_held(case: Case, folder: Path) -> Iterator[None]:
    """Hold the locks that a writer to the last bucket needs."""
    if case.driver in DRIVERS:
        with locked(case, files.paths(case, folder)[-1]):
            yield
        return
    import psycopg

    with psycopg.connect(dsn_of(case)) as connection:
        for change in ("kv_{} SET value = value", "counter_{} SET n = n"):
            connection.execute(f"UPDATE {schema_of(folder)}.{change.format(case.buckets - 1)}".encode())
        yield
        connection.rollback()


@pytest.mark.parametrize("driver", [*sorted(DRIVERS), thorough("psycopg")])
def test_store_behaves_like_a_dict(driver: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    check_store(any_case(driver, request, 2), (1, 2), tmp_path)


@pytest.mark.parametrize(("name", "params"), [("puts", (0, 5)), ("batches", [(0, 5)]), ("updates", (0,))])
def test_write_on_a_locked_bucket_is_busy_and_reads_do_not_wait(
    case: Case, open_view: Open, tmp_path: Path, name: str, params: Any
) -> None:
    store = open_view()
    write = getattr(store, name)[-1]
    with write_locks_held(case, tmp_path):
        with pytest.raises(Exception) as refused:
            write(params)
        assert store.gets[-1]((0,)) == 0
    error: Any = refused.value
    before = store.busy_counts()
    assert store.was_busy(error) and before[1] == 0
    assert store.busy_counts() == (before[0] + 1, 0)
    explained = target_of(case.driver).explain(case.driver, error)
    assert explained.startswith(("SQLITE_BUSY: ", "SQLSTATE 55P03: "))
    write(params)


def test_missing_table_is_explained_and_is_not_busy(case: Case, open_view: Open, tmp_path: Path) -> None:
    store = open_view()
    if case.driver in DRIVERS:
        with files.opened(case, files.paths(case, tmp_path)[-1]) as other:
            other.rows("DROP TABLE kv")
    else:
        import psycopg

        with psycopg.connect(dsn_of(case)) as connection:
            connection.execute(f"DROP TABLE {schema_of(tmp_path)}.kv_{case.buckets - 1}".encode())
    with pytest.raises(Exception) as failed:
        store.gets[-1]((0,))
    error: Any = failed.value
    assert not store.was_busy(error)
    explained = target_of(case.driver).explain(case.driver, error)
    assert explained.startswith(("SQLITE_ERROR: no such table: kv", 'SQLSTATE 42P01: relation "'))
    assert store.busy_counts() == (0, 0)


def test_closed_store_raises(open_view: Open) -> None:
    store = open_view()
    store.close()
    with pytest.raises(Exception, match=r"closed|Cannot operate"):
        store.gets[0]((0,))


@pytest.mark.parametrize("begin", BEGIN_MODES)
def test_batch_begins_in_the_mode_of_the_case(
    case: Case, open_view: Open, tmp_path: Path, begin: str
) -> None:
    """While another connection writes, BEGIN IMMEDIATE fails at once, and BEGIN DEFERRED at the write."""
    if case.driver not in DRIVERS:
        return  # other targets show it by the order of their locks
    store = open_view(begin)
    events: list[object] = []

    def rows() -> Iterator[tuple[int, int]]:
        events.append("begun")
        yield 0, 1

    with write_locks_held(case, tmp_path), pytest.raises(Exception) as refused:
        store.batches[-1](rows())
    error: Any = refused.value
    assert store.was_busy(error)
    assert events == (["begun"] if begin == "deferred" else [])


def test_settings_that_differ_between_files_are_both_reported(tmp_path: Path) -> None:
    case = case_of("sqlite3", 2)
    for path, size in zip(files.paths(case, tmp_path), (4096, 8192), strict=True):
        create_file(replace(case, settings=replace(case.settings, page_size=size)), path, ()).close()
    with closing(open_store(case, tmp_path)) as store:
        assert store.effective()["page_size"] == "4096 / 8192"
