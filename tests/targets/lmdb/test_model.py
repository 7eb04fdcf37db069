"""LMDB's store does what a dict does, whatever is asked of it in whatever order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.targets.like_a_dict import check_store
from tests.targets.lmdb.conftest import CASE


def test_a_store_behaves_like_a_dict(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    check_store(CASE, (1, 2), tmp_path)
