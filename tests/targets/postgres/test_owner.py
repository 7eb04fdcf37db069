"""Our schema is made, used and dropped; other data of the server is never touched."""

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
def other_session(server: str) -> Iterator[Any]:
    """A foreign session; drop all schemas that a test leaves."""
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection
        for schema in schemas(server):
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE')


def test_schema_is_replaced_and_dropped(server: str, other_session: Any) -> None:
    owner = Owner(server, "sqlstress_one")
    owner.make()
    other_session.execute("CREATE TABLE sqlstress_one.t ()")
    owner.make()
    assert other_session.execute("SELECT to_regclass('sqlstress_one.t')").fetchone() == (None,)
    owner.drop()
    assert schemas(server) == []
    owner.drop()


def test_foreign_schema_is_left_alone_despite_name_or_comment(server: str, other_session: Any) -> None:
    other_session.execute("CREATE SCHEMA sqlstress_one")
    other_session.execute("COMMENT ON SCHEMA sqlstress_one IS 'theirs'")
    owner = Owner(server, "sqlstress_one")
    with pytest.raises(EnvironmentFailure, match=r"cannot create sqlstress_one: .*already exists"):
        owner.make()
    owner.drop()
    other_session.execute("CREATE SCHEMA theirs")
    try:
        other_session.execute(f"COMMENT ON SCHEMA theirs IS '{COMMENT}'")
        drop_abandoned(server)
        assert other_session.execute("SELECT to_regnamespace('theirs') IS NOT NULL").fetchone() == (True,)
    finally:
        other_session.execute("DROP SCHEMA theirs")
    assert schemas(server) == ["sqlstress_one"]


def test_schema_in_use_is_neither_dropped_nor_taken(
    server: str, other_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(server, "sqlstress_one")
    owner.make()
    drop_abandoned(server)
    other = Owner(server, "sqlstress_one")
    with monkeypatch.context() as patch:
        # Only for these two: a server frees the locks of a closed connection a moment later.
        patch.setattr("sqlstress.targets.postgres.own_schema.LOCKED_S", 0.1)
        for take in (other.make, other.drop):
            with pytest.raises((EnvironmentFailure, ConnectionError), match="another sqlstress uses"):
                take()
    assert schemas(server) == ["sqlstress_one"]
    owner.drop()


def test_schema_of_a_killed_owner_is_dropped_at_the_next_start(server: str, other_session: Any) -> None:
    command = [sys.executable, "-c", HOLD, server, "sqlstress_one"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout
        assert killed.stdout.readline() == b"made\n"
        drop_abandoned(server)
        assert schemas(server) == ["sqlstress_one"]
        killed.kill()
    until = time.monotonic() + 10  # the server takes a moment to see that a session is gone
    while schemas(server) and time.monotonic() < until:
        drop_abandoned(server)
    assert schemas(server) == []


def test_owner_with_an_ended_session_can_still_drop_its_schema(server: str, other_session: Any) -> None:
    owner = Owner(server, "sqlstress_one")
    owner.make()
    assert owner._connection
    other_session.execute("SELECT pg_terminate_backend(%s, 5000)", (owner._connection.info.backend_pid,))
    owner.drop()
    assert schemas(server) == []


def test_missing_right_to_create_a_schema_is_an_error(server: str, other_session: Any) -> None:
    other_session.execute("CREATE ROLE nobody_here LOGIN PASSWORD 'x'")
    try:
        dsn = psycopg.conninfo.make_conninfo(server, user="nobody_here", password="x")
        owner = Owner(dsn, "sqlstress_one")
        with pytest.raises(EnvironmentFailure, match=r"SQLSTATE 42501: permission denied for database"):
            owner.make()
        owner.drop()
    finally:
        other_session.execute("DROP ROLE nobody_here")


def test_schema_name_depends_only_on_the_folder(tmp_path: Path) -> None:
    names = {schema_of(tmp_path / name) for name in ("a", "b", "a")}
    assert len(names) == 2
    assert all(len(name) < 63 and name.startswith("sqlstress_") for name in names)
    assert schema_of(Path("a")) == schema_of(Path.cwd() / "a")


def test_dropped_schema_can_be_remade_before_the_session_is_closed(
    server: str, other_session: Any, monkeypatch: pytest.MonkeyPatch
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
