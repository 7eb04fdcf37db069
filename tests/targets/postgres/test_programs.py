"""Connection data for user programs: the same parts in a URL and in variables, with any characters."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("psycopg")

from psycopg.conninfo import conninfo_to_dict

from sqlstress.report.case import Case, Server
from sqlstress.targets.postgres import TARGET
from sqlstress.targets.postgres.dialect import SERVER_VARIABLE
from sqlstress.targets.postgres.place import SECRET, directions, resolve_dsn
from tests.servers import needs_server

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
HOSTS = st.one_of(
    st.sampled_from(["localhost", "db.example.org", "127.0.0.1", "::1", "/tmp/a folder", "one,two", "@odd"])
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "host": HOSTS,
        "port": st.integers(1, 65535).map(str),
        "user": WORDS,
        "dbname": WORDS,
        "password": WORDS,
        "sslmode": st.sampled_from(["disable", "prefer"]),
        "options": st.just("-c work_mem=8MB"),
        "connect_timeout": st.just("3"),
    },
)


@given(PARTS)
def test_url_has_all_parts_except_the_secret(parts: dict[str, str]) -> None:
    connection_info = directions(parts, "sqlstress_x", "read-committed")
    read = conninfo_to_dict(connection_info.address)
    options = str(read.pop("options"))
    assert read.pop("application_name") == "sqlstress_x"
    assert options.startswith(parts.get("options", "")) and "search_path=sqlstress_x,pg_catalog" in options
    assert options.endswith(r"default_transaction_isolation=read\ committed")
    assert read == {name: value for name, value in parts.items() if name not in SECRET and name != "options"}


@given(PARTS)
def test_variables_have_the_secret_and_unset_a_foreign_service(parts: dict[str, str]) -> None:
    connection_info = directions(parts, "sqlstress_x")
    variables = connection_info.variables
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
    for name, variable in {**names, "password": "PGPASSWORD"}.items():
        assert variables.get(variable) == parts.get(name)
    assert variables["PGSERVICE"] is None
    assert variables["PGAPPNAME"] == "sqlstress_x" and variables["PGHOSTADDR"] is None
    assert connection_info.secret == parts.get("password", "")
    assert "isolation" not in str(variables["PGOPTIONS"])


@pytest.mark.thorough
def test_variables_of_libpq_are_hidden_from_our_server_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_server()
    variables = {"PGHOSTADDR": "192.0.2.1", "PGSERVICE": "prod", "PGSSLMODE": "require"}
    for name, value in {**variables, "PGDATA": "/a"}.items():
        monkeypatch.setenv(name, value)
    with TARGET.serving([Case(driver="psycopg", server=Server())], tmp_path):
        assert not variables.keys() & os.environ.keys() and os.environ["PGDATA"] == "/a"
    assert variables.items() <= os.environ.items() and SERVER_VARIABLE not in os.environ


def test_service_and_environment_are_resolved_into_the_parts(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_parts = {name: str(value) for name, value in conninfo_to_dict(server).items()}
    lines = [
        f"{name}={value}" for name, value in {**server_parts, "dbname": "none"}.items() if name != "password"
    ]
    (tmp_path / "services").write_text("\n".join(["[theirs]", *lines, ""]))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGPASSWORD", server_parts["password"])
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=8MB")
    parts = resolve_dsn("service=theirs dbname=postgres")
    assert {name: parts[name] for name in server_parts} == {**server_parts, "dbname": "postgres"}
    connection_info = directions(parts, "sqlstress_x")
    assert (
        connection_info.variables["PGSERVICE"] is None
        and connection_info.variables["PGDATABASE"] == "postgres"
    )
    assert str(connection_info.variables["PGOPTIONS"]).startswith(
        "-c work_mem=8MB -c search_path=sqlstress_x"
    )
    assert "theirs" not in connection_info.address and server_parts["password"] not in connection_info.address


def test_secret_is_hidden_in_output_of_programs() -> None:
    connection_info = directions({"password": "geheim"}, "sqlstress_x")
    assert connection_info.hidden("postgresql://me:geheim@h/db refused") == "postgresql://me:...@h/db refused"
    assert directions({}, "sqlstress_x").hidden("as it is") == "as it is"
