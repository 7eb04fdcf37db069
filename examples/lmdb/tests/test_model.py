"""LMDB's store behaves like a dict for any sequence of operations."""

from __future__ import annotations

from pathlib import Path

from conftest import CASE

from tests.targets.like_a_dict import check_store


def test_store_behaves_like_a_dict(tmp_path: Path) -> None:
    check_store(CASE, (1, 2), tmp_path)
