"""The calls of a worker's connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.cycles.moves import definition
from sqlstress.experiments.cycles.worker import Steps
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.connections import Client
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.experiments.cycles.cases import case_of
from tests.experiments.measured import SALT
from tests.pulses import nothing


def made(case: Case, folder: Path) -> tuple[Steps, Client]:
    place = SqlitePlace(case, folder)
    place.create_tables([definition(1)], nothing)
    client = place.client(1)
    return Steps(case, 1, SALT, client), client


def do(steps: Steps) -> None:
    for step in (*steps.of_cycle(1), *steps.closing()):
        step.call(step.params)


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
@pytest.mark.parametrize("busy", ["default", "fair"])
def test_a_closing_checkpoint_that_a_reader_keeps_from_its_end_is_told(
    tmp_path: Path, driver: str, busy: str
) -> None:
    pytest.importorskip(driver)
    case = case_of(Settings(synchronous="off", busy=busy, busy_timeout_ms=50), driver=driver)
    steps, client = made(case, tmp_path)
    # Of the same library: the locks of one process's two libraries would not be seen by each other.
    with files.opened(case, files.paths(case, tmp_path)[0]) as reader:
        reader.rows("BEGIN")
        assert reader.rows("SELECT count(*) FROM t1") == [(0,)]
        with pytest.raises(EnvironmentFailure, match="the closing checkpoint met a lock that stayed taken"):
            do(steps)
    client.close()


def test_a_closing_checkpoint_leaves_the_wal_empty(tmp_path: Path) -> None:
    case = case_of()
    steps, client = made(case, tmp_path)
    do(steps)
    wal = tmp_path / "kv.db-wal"
    assert wal.stat().st_size == 0
    client.close()


def test_a_database_that_is_not_there_is_told_with_sqlites_code(tmp_path: Path) -> None:
    case = case_of()
    with pytest.raises(EnvironmentFailure, match=r"cannot open kv\.db: SQLITE_CANTOPEN"):
        Steps(case, 1, SALT, SqlitePlace(case, tmp_path / "missing").client(1))
