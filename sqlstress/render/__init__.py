"""Reports as text and files: pure functions of a report, imported when they are used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from sqlstress.report import Report


def _lazy(target: str) -> Callable[[Report], str]:
    """Return a renderer that is imported when it is called; `target` is "module:function"."""
    module, _, name = target.partition(":")

    def render(report: Report) -> str:
        return cast("Callable[[Report], str]", getattr(import_module(module), name))(report)

    return render


FORMATS: dict[str, Callable[[Report], str]] = {
    "json": _lazy("sqlstress.report:to_json"),
    "csv": _lazy("sqlstress.render.csvfile:report_csv"),
    "md": _lazy("sqlstress.render.markdown:report_markdown"),
}
"""What `--output` writes, by suffix."""
