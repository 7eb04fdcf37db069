"""Reports as text and files: pure functions of a report, imported when they are used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlstress.analysis.comparison import Comparison
    from sqlstress.report import Report


def _lazy(target: str) -> Callable[[Any], str]:
    """Return a renderer that is imported when it is called; `target` is "module:function"."""
    module, _, name = target.partition(":")

    def render(shown: Any) -> str:
        return str(getattr(import_module(module), name)(shown))

    return render


FORMATS: dict[str, Callable[[Report], str]] = {
    "json": _lazy("sqlstress.report:to_json"),
    "csv": _lazy("sqlstress.render.csvfile:report_csv"),
    "md": _lazy("sqlstress.render.markdown:report_markdown"),
}
"""What `--output` writes, by suffix."""

COMPARISON_FORMATS: dict[str, Callable[[Comparison], str]] = {
    "md": _lazy("sqlstress.render.markdown:comparison_markdown"),
    "txt": _lazy("sqlstress.render.text:comparison_text"),
}
"""What `--output` of compare writes, by suffix."""
