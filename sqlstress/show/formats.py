"""Formats of reports: functions that return a report as text. Their modules are imported when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError

if TYPE_CHECKING:
    from sqlstress.analysis.comparison import Comparison
    from sqlstress.report import Report


DOCUMENTS = ("json", "txt", "md", "html", "xml")
"""Formats that can hold the result of a study without cases, such as a crash test."""


def _lazy(module: str, name: str) -> Callable[..., str]:
    """Return a function that calls the function `name` of a module, imported at the first call."""

    def render(*shown: Any) -> str:
        return str(getattr(import_module(f"sqlstress.show.{module}"), name)(*shown))

    return render


def _figures_only(form: str, module: str, name: str) -> Callable[..., str]:
    """Return the function of `_lazy` with a check: it raises UsageError for a report without cases.

    `form` is the name of the format in the error.
    """

    def render(*reports: Report) -> str:
        from sqlstress.analysis.study_parts import first_study_label

        if (kind := first_study_label(tuple(report for report in reports if not report.runs))) is not None:
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
"""Functions for `--output`, by format: the suffix of the file, or a prefix as in "bmf:FILE"."""

SUFFIXES = ("json", "csv", "txt", "md", "html", "xml")
"""Formats that the suffix of the output file selects. Other formats need a prefix."""

COMPARISON_FORMATS: dict[str, Callable[[Comparison], str]] = {
    "txt": _lazy("text", "comparison_text"),
    "md": _lazy("markdown", "comparison_markdown"),
    "html": _lazy("page.html_file", "comparison_html"),
}
"""Functions for `--output` of `compare`, by suffix of the file."""

CHECK_FORMATS: dict[str, Callable[..., str]] = {
    "txt": _lazy("text", "check_text"),
    "md": _lazy("markdown", "check_markdown"),
}
"""Functions for `--output` of `check`, by suffix: (check, "tps" or "p99", allowed drop as share) → text."""

NAMED_FORMATS: dict[str, Callable[[Sequence[tuple[str, Report]]], str]] = {
    "html": _lazy("page.html_file", "named_html"),
}
"""Functions for `--output` that show several reports under their names, by suffix of the file."""

SECOND_FILES: dict[str, tuple[str, Callable[..., str]]] = {
    "github-action-benchmark": ("-latency", _lazy("trackers", "latency_json"))
}
"""Formats that write a second file: the addition to the file's name, and the function for its text."""

SINGLE_REPORT_FORMATS = frozenset({"json"})
"""Formats that can hold only one report."""
