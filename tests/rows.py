"""Rows of a parametrized test; some run only in CI, because they take long and resemble other rows."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def fault(area: str, injected: str, outcome: str) -> pytest.MarkDecorator:
    """Return the mark of a test that injects a fault: a row of reports/reliability.md."""
    return pytest.mark.fault(area=area, injected=injected, outcome=outcome)


def thorough(*values: Any, id: str | None = None) -> Any:
    """Return a row that everyday runs leave out."""
    return pytest.param(*values, marks=pytest.mark.thorough, id=id)


def mostly_thorough(rows: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Return rows; everyday runs leave out all except `quick`."""
    return _marked(rows, quick, pytest.mark.thorough)


def mostly_long(rows: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """Return rows; CI runs only `kept`, which together contain each value that the unmarked combine."""
    return _marked(rows, kept, pytest.mark.long)


def _marked(rows: Iterable[Any], unmarked: Collection[Any], mark: pytest.MarkDecorator) -> list[Any]:
    rows = list(rows)
    assert all(row in rows for row in unmarked)
    return [
        row if row in unmarked else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=mark)
        for row in rows
    ]
