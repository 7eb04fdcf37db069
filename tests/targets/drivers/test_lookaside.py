"""What a connection is asked beside the load leaves the load SQLite's own memory for small things."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.report.case import Settings
from sqlstress.targets.sqlite.connections import GET
from sqlstress.targets.sqlite.drivers import settings

apsw = pytest.importorskip("apsw")


def test_settings_that_were_read_back_leave_operations_their_lookaside(tmp_path: Path) -> None:
    from sqlstress.targets.sqlite.drivers.apsw_driver import connect

    connection = connect(tmp_path / "kv.db", 0, None)
    connection.rows("CREATE TABLE kv (key INTEGER PRIMARY KEY, value)")
    asked = Settings(journal_mode="wal", synchronous="normal")
    settings.apply(connection, asked)
    get = connection.scalar(GET)
    for _ in range(3):
        settings.read_back(connection, asked)
        for key in range(100):
            get((key,))
    own = connection._connection
    assert own.status(apsw.SQLITE_DBSTATUS_LOOKASIDE_HIT)[1] > 300
    assert own.status(apsw.SQLITE_DBSTATUS_LOOKASIDE_MISS_FULL)[1] == 0
    connection.close()
