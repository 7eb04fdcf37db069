"""Rows of a parametrized test, of which some are for CI alone: they take long, and others are like them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def fault(area: str, injected: str, outcome: str) -> pytest.MarkDecorator:
    """Return the mark of a test that injects a fault: a row of reports/reliability.md."""
    return pytest.mark.fault(area=area, injected=injected, outcome=outcome)


def thorough(*values: Any, id: str | None = None) -> Any:
    """Return a row that is no part of every day."""
    return pytest.param(*values, marks=pytest.mark.thorough, id=id)


def mostly_thorough(rows: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Return rows, of which all but these are no part of every day."""
    return _marked(rows, quick, pytest.mark.thorough)


def mostly_long(rows: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """Return rows, of which CI runs these only: between them everything occurs that the others combine."""
    return _marked(rows, kept, pytest.mark.long)


def _marked(rows: Iterable[Any], others: Collection[Any], mark: pytest.MarkDecorator) -> list[Any]:
    rows = list(rows)
    assert all(one in rows for one in others)
    return [
        one if one in others else pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=mark)
        for one in rows
    ]
