"""A place of Turso's in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.experiments.kv.experiment import Load
from sqlstress.report.case import Case, Settings
from sqlstress.targets.turso.place import TursoPlace

CASE = Case(
    driver="turso", buckets=2, concurrency=1, settings=Settings(synchronous="normal"), spec=Load(key_space=30)
)


@pytest.fixture
def place(tmp_path: Path) -> TursoPlace:
    pytest.importorskip("turso")
    return TursoPlace(CASE, tmp_path)
