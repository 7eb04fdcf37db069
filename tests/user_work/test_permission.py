"""A database with a file that its user may not read."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.conftest import STRANGER
from tests.faults.surroundings import is_root

SCRIPT = """
import os, sys
from pathlib import Path
from sqlstress.errors import EnvironmentFailure
from sqlstress.user_work.database import copy
_, name, user = sys.argv
"idna".encode("idna")
os.setuid(int(user))
try:
    copy(name, Path(name).with_name("copy.db"))
except EnvironmentFailure as failure:
    print(failure)
"""


@pytest.mark.parametrize("keeps_index", [True, False])
def test_unreadable_wal_is_named_with_the_permission(keeps_index: bool) -> None:
    if not is_root():
        pytest.skip("another user is needed here: that needs POSIX and root")
    with TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o777)
        name = place / "app.db"
        live = sqlite3.connect(name, isolation_level=None)
        live.execute("PRAGMA journal_mode = wal")
        live.execute("CREATE TABLE t (a)")
        for path in place.iterdir():
            path.chmod(0o644)
        (place / "app.db-wal").chmod(0)
        if not keeps_index:
            (place / "app.db-shm").unlink()
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(name), str(STRANGER)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        live.close()
    assert "'app.db-wal'" in done.stdout
    assert "ermission" in done.stdout
    assert "in the middle" not in done.stdout
