"""Our schema is made, used and dropped; nothing else of the server is ever touched."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.postgres.dialect import schema_of

psycopg = pytest.importorskip("psycopg")

from sqlstress.targets.postgres.own_schema import COMMENT, Owner, drop_abandoned  # noqa: E402
from tests.cli.on_postgres import schemas  # noqa: E402
from tests.engine.processes import ROOT  # noqa: E402

HOLD = """
import sys
from sqlstress.targets.postgres.own_schema import Owner
owner = Owner(sys.argv[1], sys.argv[2])
owner.make()
print("made", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def somebody(server: str) -> Iterator[Any]:
    """Somebody else's session; all schemas that a test leaves are dropped afterwards."""
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection
        for schema in schemas(server):
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE')


def test_a_schema_is_made_anew_and_dropped(server: str, somebody: Any) -> None:
    owner = Owner(server, "sqlstress_one")
    owner.make()
    somebody.execute("CREATE TABLE sqlstress_one.t ()")
    owner.make()
    assert somebody.execute("SELECT to_regclass('sqlstress_one.t')").fetchone() == (None,)
    owner.drop()
    assert schemas(server) == []
    owner.drop()


def test_one_that_we_did_not_make_is_left_alone_whatever_its_name_or_its_comment(
    server: str, somebody: Any
) -> None:
    somebody.execute("CREATE SCHEMA sqlstress_one")
    somebody.execute("COMMENT ON SCHEMA sqlstress_one IS 'theirs'")
    owner = Owner(server, "sqlstress_one")
    with pytest.raises(EnvironmentFailure, match=r"cannot create the schema sqlstress_one: .*already exists"):
        owner.make()
    owner.drop()
    somebody.execute("CREATE SCHEMA theirs")
    try:
        somebody.execute(f"COMMENT ON SCHEMA theirs IS '{COMMENT}'")
        drop_abandoned(server)
        assert somebody.execute("SELECT to_regnamespace('theirs') IS NOT NULL").fetchone() == (True,)
    finally:
        somebody.execute("DROP SCHEMA theirs")
    assert schemas(server) == ["sqlstress_one"]


def test_a_schema_in_use_is_neither_dropped_nor_taken(
    server: str, somebody: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlstress.targets.postgres.own_schema.LOCKED_S", 0.1)
    owner = Owner(server, "sqlstress_one")
    owner.make()
    drop_abandoned(server)
    other = Owner(server, "sqlstress_one")
    for take in (other.make, other.drop):
        with pytest.raises(
            (EnvironmentFailure, ConnectionError), match="another sqlstress uses the schema sqlstress_one"
        ):
            take()
    assert schemas(server) == ["sqlstress_one"]
    owner.drop()


def test_one_whose_owner_was_killed_is_dropped_by_the_next_start(server: str, somebody: Any) -> None:
    words = [sys.executable, "-c", HOLD, server, "sqlstress_one"]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout
        assert killed.stdout.readline() == b"made\n"
        drop_abandoned(server)
        assert schemas(server) == ["sqlstress_one"]
        killed.kill()
    until = time.monotonic() + 10  # the server takes a moment to see that a session is gone
    while schemas(server) and time.monotonic() < until:
        drop_abandoned(server)
    assert schemas(server) == []


def test_an_owner_whose_session_was_ended_takes_its_schema_again(server: str, somebody: Any) -> None:
    owner = Owner(server, "sqlstress_one")
    owner.make()
    assert owner._connection
    somebody.execute("SELECT pg_terminate_backend(%s, 5000)", (owner._connection.info.backend_pid,))
    owner.drop()
    assert schemas(server) == []


def test_one_that_may_make_no_schema_is_told(server: str, somebody: Any) -> None:
    somebody.execute("CREATE ROLE nobody_here LOGIN PASSWORD 'x'")
    try:
        dsn = psycopg.conninfo.make_conninfo(server, user="nobody_here", password="x")
        owner = Owner(dsn, "sqlstress_one")
        with pytest.raises(EnvironmentFailure, match=r"SQLSTATE 42501: permission denied for database"):
            owner.make()
        owner.drop()
    finally:
        somebody.execute("DROP ROLE nobody_here")


def test_each_folder_has_a_schema_of_its_own_and_each_process_the_same(tmp_path: Path) -> None:
    names = {schema_of(tmp_path / name) for name in ("a", "b", "a")}
    assert len(names) == 2
    assert all(len(name) < 63 and name.startswith("sqlstress_") for name in names)
    assert schema_of(Path("a")) == schema_of(Path.cwd() / "a")


def test_a_dropped_schema_can_be_made_before_the_server_notices_the_closed_session(
    server: str, somebody: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = psycopg.Connection.close
    monkeypatch.setattr(
        psycopg.Connection, "close", lambda connection: threading.Timer(0.2, close, [connection]).start()
    )
    owner, other = Owner(server, "sqlstress_one"), Owner(server, "sqlstress_one")
    owner.make()
    owner.drop()
    other.make()
    other.drop()
    assert schemas(server) == []
