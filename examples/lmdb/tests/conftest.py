"""A place of LMDB's in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from sqlstress_lmdb.place import LmdbPlace

CASE = Case(driver="lmdb", buckets=2, settings=Settings(synchronous="off"), spec=Load(key_space=30))


@pytest.fixture
def place(tmp_path: Path) -> LmdbPlace:
    return LmdbPlace(CASE, tmp_path)
