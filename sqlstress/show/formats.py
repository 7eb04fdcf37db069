"""Reports as text and files: pure functions of a report, imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError

if TYPE_CHECKING:
    from sqlstress.analysis.comparison import Comparison
    from sqlstress.report import Report


DOCUMENTS = ("json", "txt", "md", "html", "xml")
"""Formats that can hold what is no measurement of cases."""


def _lazy(module: str, name: str) -> Callable[..., str]:
    """Return a renderer of `show` that is imported when it is called."""

    def render(*shown: Any) -> str:
        return str(getattr(import_module(f"sqlstress.show.{module}"), name)(*shown))

    return render


def _of_cases(form: str, module: str, name: str) -> Callable[..., str]:
    """Return a renderer of a format that holds the figures of cases, and can hold nothing else."""

    def render(*reports: Report) -> str:
        from sqlstress.analysis.study_parts import called

        if (what := called(tuple(report for report in reports if not report.runs))) is not None:
            known = ", ".join(DOCUMENTS)
            raise UsageError(f"{form} holds the figures of cases, and {what} has none: use {known}.")
        return _lazy(module, name)(*reports)

    return render


FORMATS: dict[str, Callable[..., str]] = {
    "json": _lazy("json_file", "report_json"),
    "csv": _of_cases("csv", "csv_file", "report_csv"),
    "txt": _lazy("text", "report_text"),
    "md": _lazy("markdown", "report_markdown"),
    "html": _lazy("page.html_file", "report_html"),
    "xml": _lazy("junit", "report_junit"),
    "github-action-benchmark": _of_cases("github-action-benchmark", "trackers", "throughput_json"),
    "bmf": _of_cases("bmf", "trackers", "bencher_json"),
}
"""What `--output` writes, by suffix or by prefix: a report, or several, as text."""

SUFFIXES = ("json", "csv", "txt", "md", "html", "xml")
"""Those of them that a file's name can end with."""

COMPARISON_FORMATS: dict[str, Callable[[Comparison], str]] = {
    "txt": _lazy("text", "comparison_text"),
    "md": _lazy("markdown", "comparison_markdown"),
    "html": _lazy("page.html_file", "comparison_html"),
}
"""What `--output` of compare writes, by suffix."""

CHECK_FORMATS: dict[str, Callable[..., str]] = {
    "txt": _lazy("text", "check_text"),
    "md": _lazy("markdown", "check_markdown"),
}
"""What `--output` of check writes, by suffix: what was found, the metric and the drop that is allowed."""

NAMED: dict[str, Callable[[Sequence[tuple[str, Report]]], str]] = {
    "html": _lazy("page.html_file", "named_html"),
}
"""Formats that show several reports side by side, each by its name."""

BESIDE: dict[str, tuple[str, Callable[..., str]]] = {
    "github-action-benchmark": ("-latency", _lazy("trackers", "latency_json"))
}
"""Formats that need a second file: what its name has more than the first one's, and what is in it."""

SINGLE = frozenset({"json"})
"""Formats that hold one report and no more."""
