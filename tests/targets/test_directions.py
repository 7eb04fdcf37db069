"""User programs reach the data by the address, and by the environment variables alone."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.experiments.sql.spec import Scripts
from sqlstress.report.case import Case, Server
from sqlstress.target import program_drivers, serves
from sqlstress.targets import open_place, target_of
from sqlstress.targets.place import SqlPlace
from sqlstress.user_work.loading import DATABASE, environment
from tests.pulses import nothing
from tests.rows import thorough

OPENS = {
    "sqlite3": "import os, sqlite3; c = sqlite3.connect({}); c.isolation_level = None",
    "psycopg": "import os, psycopg; c = psycopg.connect({}, autocommit=True)",
}
BY_ADDRESS = f"os.environ['{DATABASE}']"


@pytest.fixture(params=program_drivers())
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPlace]:
    server = None
    if serves(request.param):
        request.getfixturevalue("our_server")
        server = Server(isolation="repeatable-read")
    case = Case(workload="sql", driver=request.param, server=server, spec=Scripts())
    own_place: SqlPlace = open_place(case, tmp_path)  # type: ignore[assignment]
    yield own_place
    own_place.discard()


def run(place: SqlPlace, statement: str, address: str = BY_ADDRESS) -> str:
    """Run a statement in a user program; return its output."""
    code = f"{OPENS[place.case.driver].format(address)}\nprint(c.execute({statement!r}).fetchall())"
    if not statement.startswith(("SELECT", "SHOW")):
        code = code.replace("print(", "(").replace(".fetchall()", "")
    variables = environment(place.directions(), {"PATH": "", "PGSERVICE": "of-somebody-else"})
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_data_of_a_user_program_is_detected_and_cleared(place: SqlPlace) -> None:
    place.clear()
    assert not place.is_filled()
    before = place.rows_written(nothing)
    run(place, "CREATE TABLE t (x int)")
    run(place, "INSERT INTO t VALUES (5)")
    place.settle(nothing)
    assert place.is_filled()
    with place.reading(nothing) as reader:
        assert reader.rows("SELECT x FROM t") == [(5,)]
    after = place.rows_written(nothing)
    assert (before, after) == (None, None) or (before == 0 and after == 1)
    place.clear()
    assert not place.is_filled()


def test_address_has_no_secret(place: SqlPlace, request: pytest.FixtureRequest) -> None:
    place.clear()
    assert place.directions().address
    if place.case.server:
        from psycopg.conninfo import conninfo_to_dict

        secret = conninfo_to_dict(request.getfixturevalue("server"))["password"]
        assert secret and str(secret) not in place.directions().address


@pytest.mark.parametrize("driver", program_drivers())
def test_stand_in_leads_to_no_data(driver: str, tmp_path: Path) -> None:
    if serves(driver):
        pytest.importorskip("psycopg")
    connection_info = target_of(driver).stand_in(tmp_path)
    assert str(tmp_path.name) in connection_info.address
    assert not list(tmp_path.iterdir())
    if serves(driver):
        import psycopg

        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(connection_info.address).close()
        assert (
            connection_info.variables["PGHOST"] == tmp_path.as_posix()
            and connection_info.variables["PGSERVICE"] is None
        )
    else:
        with closing(sqlite3.connect(connection_info.address)) as connection:
            assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


@pytest.mark.parametrize("address", [BY_ADDRESS, thorough("''")])
def test_session_has_our_schema_and_isolation_level(place: SqlPlace, address: str) -> None:
    if not place.case.server:
        return  # no variable leads to a file
    place.clear()
    schema = run(place, "SELECT current_schema()", address)[3:-4]
    assert schema.startswith("sqlstress_")
    names = "current_schema(), current_setting('transaction_isolation'), current_setting('application_name')"
    assert run(place, f"SELECT {names}", address) == f"[('{schema}', 'repeatable read', '{schema}')]"
