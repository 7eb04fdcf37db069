"""Rows of a parametrized test, of which some are for CI alone: they take long, and others are like them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thorough(*values: Any, id: str | None = None) -> Any:
    """Return a row that is no part of every day."""
    return pytest.param(*values, marks=pytest.mark.thorough, id=id)


def mostly_thorough(rows: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Return rows, of which all but these are no part of every day."""
    return _mostly(pytest.mark.thorough, rows, quick)


def mostly_long(rows: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Return rows, of which all but these take minutes."""
    return _mostly(pytest.mark.long, rows, quick)


def _mostly(mark: pytest.MarkDecorator, rows: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    rows = list(rows)
    assert all(one in rows for one in quick)
    return [
        row if row in quick else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=mark)
        for row in rows
    ]
