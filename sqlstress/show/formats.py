"""Reports as text and files: pure functions of a report, whose modules are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError

if TYPE_CHECKING:
    from sqlstress.analysis.comparison import Comparison
    from sqlstress.report import Report


DOCUMENTS = ("json", "txt", "md", "html", "xml")
"""Formats that can hold results other than measurements of cases."""


def _lazy(module: str, name: str) -> Callable[..., str]:
    """Return a renderer of `show` that imports its module when it is called."""

    def render(*shown: Any) -> str:
        return str(getattr(import_module(f"sqlstress.show.{module}"), name)(*shown))

    return render


def _figures_only(form: str, module: str, name: str) -> Callable[..., str]:
    """Return a renderer of a format that can only hold figures of cases."""

    def render(*reports: Report) -> str:
        from sqlstress.analysis.study_parts import called

        if (kind := called(tuple(report for report in reports if not report.runs))) is not None:
            formats = ", ".join(DOCUMENTS)
            raise UsageError(f"{form} holds the figures of cases, and {kind} has none: use {formats}.")
        return _lazy(module, name)(*reports)

    return render


FORMATS: dict[str, Callable[..., str]] = {
    "json": _lazy("json_file", "report_json"),
    "csv": _figures_only("csv", "csv_file", "report_csv"),
    "txt": _lazy("text", "report_text"),
    "md": _lazy("markdown", "report_markdown"),
    "html": _lazy("page.html_file", "report_html"),
    "xml": _lazy("junit", "report_junit"),
    "github-action-benchmark": _figures_only("github-action-benchmark", "trackers", "throughput_json"),
    "bmf": _figures_only("bmf", "trackers", "bencher_json"),
}
"""Renderers for `--output` by suffix or prefix: each returns one or several reports as text."""

SUFFIXES = ("json", "csv", "txt", "md", "html", "xml")
"""Formats that the suffix of the output file can select."""

COMPARISON_FORMATS: dict[str, Callable[[Comparison], str]] = {
    "txt": _lazy("text", "comparison_text"),
    "md": _lazy("markdown", "comparison_markdown"),
    "html": _lazy("page.html_file", "comparison_html"),
}
"""Renderers for `--output` of `compare`, by suffix."""

CHECK_FORMATS: dict[str, Callable[..., str]] = {
    "txt": _lazy("text", "check_text"),
    "md": _lazy("markdown", "check_markdown"),
}
"""Renderers for `--output` of `check`, by suffix. Arguments: result, metric, allowed drop."""

NAMED_FORMATS: dict[str, Callable[[Sequence[tuple[str, Report]]], str]] = {
    "html": _lazy("page.html_file", "named_html"),
}
"""Renderers of several reports side by side, each with its name."""

BESIDE: dict[str, tuple[str, Callable[..., str]]] = {
    "github-action-benchmark": ("-latency", _lazy("trackers", "latency_json"))
}
"""Second file of a format: suffix appended to the name of the first file, and renderer."""

SINGLE_REPORT_FORMATS = frozenset({"json"})
"""Formats that can hold only one report."""
