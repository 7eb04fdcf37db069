"""plotly.js, from the package that brings it: the extra `report`."""

from __future__ import annotations

from functools import cache

from sqlstress.errors import UsageError


@cache
def plotly_js() -> str:
    """Return the library's source. Raises UsageError where plotly is not installed."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise UsageError("html needs plotly: python -m pip install plotly.") from error
    return str(get_plotlyjs())
