"""Behaviour of a worker's store on a server, in addition to the contract of every store."""

import threading
from pathlib import Path
from typing import Any

import pytest

from sqlstress.report.case import ISOLATIONS, Case
from sqlstress.targets.postgres import TARGET
from sqlstress.targets.postgres.dialect import schema_of
from tests.targets.conftest import Open, any_case

psycopg = pytest.importorskip("psycopg")

from sqlstress.targets.postgres.place import PostgresClient  # noqa: E402


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Case:
    return any_case("psycopg", request, 2)


@pytest.fixture
def schema(tmp_path: Path) -> str:
    return schema_of(tmp_path)


def test_row_released_in_time_is_waited_for(schema: str, open_view: Open, our_server: str) -> None:
    store = open_view(busy_timeout_ms=60_000)
    with psycopg.connect(our_server) as other:
        other.execute(f"UPDATE {schema}.kv_0 SET value = value")
        release = threading.Timer(0.2, other.rollback)
        release.start()
        store.puts[0]((1, 5))
        release.join()
    assert store.busy_counts() == (0, 0)


@pytest.mark.parametrize("isolation", ISOLATIONS[1:])
def test_refused_write_is_retried_and_counted(
    schema: str, open_view: Open, our_server: str, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session commits once between the read and the write."""
    prepare, ran = PostgresClient.prepare, list[str]()

    def watched(client: PostgresClient, sql: str) -> Any:
        run = prepare(client, sql)

        def call(*params: Any) -> Any:
            result = run(*params)
            if sql.startswith("SELECT n FROM counter_0") and "SELECT" not in ran:
                with psycopg.connect(our_server) as other:
                    other.execute(f"UPDATE {schema}.counter_0 SET n = n + 10")
            ran.append(sql.partition(" ")[0])
            return result

        return call

    monkeypatch.setattr(PostgresClient, "prepare", watched)
    store = open_view("deferred", isolation, busy_timeout_ms=60_000)
    store.updates[0]((3,))
    assert store.busy_counts() == (0, 1)
    assert ran == ["BEGIN", "SELECT", "BEGIN", "SELECT", "UPDATE", "COMMIT"]
    with psycopg.connect(our_server) as other:
        assert other.execute(f"SELECT n FROM {schema}.counter_0 WHERE id = 3").fetchone() == (11,)


def test_connection_ended_by_the_server_is_explained(open_view: Open, our_server: str) -> None:
    store = open_view()
    with psycopg.connect(our_server, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'sqlstress\\_%'"
        )
    with pytest.raises(Exception) as failed:
        store.gets[0]((0,))
        store.gets[0]((0,))
    error: Any = failed.value
    assert not store.was_busy(error)
    explained = TARGET.explain("psycopg", error)
    assert "terminating connection" in explained or "closed" in explained


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_effective_settings_are_read_back(open_view: Open, isolation: str) -> None:
    effective = open_view(isolation=isolation).effective()
    assert effective["synchronous_commit"] == "off"
    assert effective["transaction_isolation"] == isolation.replace("-", " ")
    assert {"fsync", "full_page_writes", "wal_sync_method", "server_version"} <= effective.keys()
