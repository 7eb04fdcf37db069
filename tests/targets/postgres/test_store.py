"""What a worker's view of a server does: as of every store, and when others hold what it wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.kv.keys import encoder
from sqlstress.report.case import Case
from sqlstress.report.server import ISOLATIONS
from sqlstress.targets.postgres import explain
from sqlstress.targets.postgres.place import PostgresPlace
from sqlstress.targets.views import Store
from tests.pulses import nothing
from tests.targets.postgres.conftest import KEYS, Open

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def store(open_view: Open) -> Store:
    return open_view()


@pytest.fixture
def key(case: Case) -> Any:
    """Numbers as keys of the case's type."""
    return encoder(case.spec.key_type)


@contextmanager
def held(dsn: str, place: PostgresPlace, sql: str) -> Iterator[Any]:
    """Keep open a transaction of somebody else's that has run a statement."""
    with psycopg.connect(dsn) as connection:
        connection.execute(sql.format(kv=f"{place.name}.kv_0", counter=f"{place.name}.counter_0"))
        yield connection
        connection.rollback()


LOCK_A_ROW = "UPDATE {kv} SET value = value"


def last_bucket(case: Case) -> int:
    return case.buckets - 1


def test_there_is_one_of_each_operation_for_each_bucket(case: Case, store: Store) -> None:
    for operations in (store.gets, store.pairs, store.puts, store.batches, store.updates):
        assert len(operations) == case.buckets


def test_what_is_there_is_found_and_what_is_not_is_none(case: Case, store: Store, key: Any) -> None:
    get = store.gets[last_bucket(case)]
    assert [get((key(number),)) for number in (0, 7, 29, KEYS)] == [0, -7, -29, None]


def test_a_put_replaces_or_adds_for_everybody_at_once(
    case: Case, store: Store, open_view: Open, key: Any
) -> None:
    bucket, other = last_bucket(case), open_view()
    for number in (3, 99):
        store.puts[bucket]((key(number), 1000 + number))
    assert [other.gets[bucket]((key(number),)) for number in (3, 4, 99)] == [1003, -4, 1099]


@pytest.mark.parametrize("value", [0, 1, -1, (1 << 63) - 1, -(1 << 63)])
def test_every_whole_number_of_64_bits_comes_back(store: Store, key: Any, value: int) -> None:
    store.puts[0]((key(1), value))
    assert store.gets[0]((key(1),)) == value


def test_values_that_are_bytes_come_back(place: PostgresPlace, open_view: Open) -> None:
    value = bytes(range(256))
    place.table("int", len(value), 0).fill([[(1, value)]] * place.case.buckets, nothing)
    store = open_view()
    store.puts[0]((2, value[::-1]))
    assert (store.gets[0]((1,)), store.gets[0]((2,))) == (value, value[::-1])


@pytest.mark.parametrize("begin", ["immediate", "deferred"])
def test_a_batch_is_there_as_a_whole(store: Store, open_view: Open, key: Any, begin: str) -> None:
    open_view(begin).batches[0]([(key(number), 1000 + number) for number in (9, 2, 5)])
    assert [store.gets[0]((key(number),)) for number in (2, 5, 9)] == [1002, 1005, 1009]


@pytest.mark.parametrize("begin", ["immediate", "deferred"])
def test_a_batch_that_fails_halfway_leaves_nothing(open_view: Open, key: Any, begin: str) -> None:
    store = open_view(begin)
    with pytest.raises(Exception, match="integer") as failed:
        store.batches[0]([(key(1), 1001), (key(2), object())])
    assert not store.was_busy(failed.value)
    assert store.gets[0]((key(1),)) == -1
    store.puts[0]((key(1), 7))


def test_a_pair_is_both_rows(store: Store, key: Any) -> None:
    store.puts[0]((key(2), 77))
    assert dict(store.pairs[0]((key(1), key(2)))) == {key(1): -1, key(2): 77}


def test_an_update_adds_one_to_its_counter_alone(case: Case, place: PostgresPlace, store: Store) -> None:
    for counter in (0, 3, 3):
        store.updates[last_bucket(case)]((counter,))
    table = place.table(case.spec.key_type, 8, 0)
    store.close()
    found = dict(table.counters(last_bucket(case)))
    assert {number: n for number, n in found.items() if n} == {0: 1, 3: 2}


@pytest.mark.parametrize(("name", "params"), [("puts", 1), ("batches", 1), ("updates", 1)])
def test_a_row_that_stays_locked_is_busy_and_is_counted(
    place: PostgresPlace, store: Store, our_server: str, key: Any, name: str, params: int
) -> None:
    given: Any = {"puts": (key(params), 5), "batches": [(key(params), 5)], "updates": (params,)}[name]
    write = getattr(store, name)[0]
    lock = "UPDATE {counter} SET n = n" if name == "updates" else LOCK_A_ROW
    with held(our_server, place, lock), pytest.raises(Exception, match="lock timeout") as refused:
        write(given)
    error: Any = refused.value
    assert store.busy_counts() == (0, 0)
    assert store.was_busy(error)
    assert store.busy_counts() == (1, 0)
    assert explain("psycopg", error).startswith("lock_not_available: ")
    write(given)


def test_reads_wait_for_nobody(place: PostgresPlace, store: Store, our_server: str, key: Any) -> None:
    with held(our_server, place, LOCK_A_ROW):
        assert store.gets[0]((key(1),)) == -1


def test_a_row_that_is_let_go_in_time_is_waited_for(
    place: PostgresPlace, open_view: Open, our_server: str, key: Any
) -> None:
    store = open_view(timeout_ms=60_000)
    with held(our_server, place, LOCK_A_ROW) as other:
        release = threading.Timer(0.2, other.rollback)
        release.start()
        store.puts[0]((key(1), 5))
        release.join()
    assert store.busy_counts() == (0, 0)


@pytest.mark.parametrize("isolation", ISOLATIONS[1:])
def test_who_is_refused_at_his_write_is_begun_again_and_counted(
    place: PostgresPlace, open_view: Open, our_server: str, isolation: str
) -> None:
    """Somebody else commits between our read and our write, once."""
    store = open_view("deferred", isolation, timeout_ms=60_000)
    interrupted = threading.Event()
    client: Any = store._client  # type: ignore[attr-defined]
    run, begun = client._connection, []

    class Between:
        """The connection, and somebody else who writes behind the first read."""

        def exec_prepared(self, name: bytes, *given: Any) -> Any:
            result = run.exec_prepared(name, *given)
            begun.append(name)
            if name.startswith(b"count") and not interrupted.is_set():
                interrupted.set()
                with psycopg.connect(our_server) as other:
                    other.execute(f"UPDATE {place.name}.counter_0 SET n = n + 10")
            return result

        def __getattr__(self, name: str) -> Any:
            return getattr(run, name)

    client._connection = Between()
    store.updates[0] = client.retried(
        store._update(client.prepared(b"count_0", 1), client.prepared(b"set_0", 2))  # type: ignore[attr-defined]
    )
    store.updates[0]((3,))
    assert store.busy_counts() == (0, 1)
    assert begun == [b"count_0", b"set_0", b"count_0", b"set_0"]
    with psycopg.connect(our_server) as other:
        assert other.execute(f"SELECT n FROM {place.name}.counter_0 WHERE id = 3").fetchone() == (11,)


def test_a_table_that_is_gone_is_explained_and_is_not_busy(
    place: PostgresPlace, store: Store, our_server: str, key: Any
) -> None:
    with psycopg.connect(our_server) as other:
        other.execute(f"DROP TABLE {place.name}.kv_0")
    with pytest.raises(Exception) as failed:
        store.gets[0]((key(0),))
    error: Any = failed.value
    assert not store.was_busy(error)
    assert explain("psycopg", error).startswith("SQLSTATE 42P01: relation")


def test_a_connection_that_the_server_ends_is_explained(store: Store, our_server: str, key: Any) -> None:
    with psycopg.connect(our_server, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'sqlstress\\_%'"
        )
    with pytest.raises(Exception) as failed:
        store.gets[0]((key(0),))
        store.gets[0]((key(0),))
    error: Any = failed.value
    assert not store.was_busy(error)
    assert "terminating connection" in explain("psycopg", error) or "closed" in explain("psycopg", error)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_settings_in_force_are_read_back(place: PostgresPlace, open_view: Open, isolation: str) -> None:
    effective = open_view(isolation=isolation).effective()
    assert effective["synchronous_commit"] == "off"
    assert effective["transaction_isolation"] == isolation.replace("-", " ")
    assert {"fsync", "full_page_writes", "wal_sync_method", "server_version"} <= effective.keys()


def test_a_schema_that_is_not_there_cannot_be_opened(case: Case, tmp_path: Path) -> None:
    from sqlstress.errors import EnvironmentFailure
    from sqlstress.targets import open_place

    with pytest.raises(EnvironmentFailure, match=r"cannot open sqlstress_\w+: SQLSTATE 42P01"):
        open_place(case, tmp_path / "missing").keyvalue(1, "immediate", 0)
