"""Tests of the formats that can be written, and of what importing them costs."""

from __future__ import annotations

import subprocess
import sys

from sqlstress.show.csv_file import report_csv
from sqlstress.show.formats import FORMATS
from sqlstress.show.json_file import report_json
from sqlstress.show.junit import report_junit
from sqlstress.show.markdown import report_markdown
from sqlstress.show.page.document import report_html
from sqlstress.show.text import report_text
from sqlstress.show.trackers import bencher_json, throughput_json
from tests.example_report import example_report


def test_each_format_is_written_by_its_renderer() -> None:
    report = example_report()
    written = {name: render(report) for name, render in FORMATS.items()}
    assert written == {
        "json": report_json(report),
        "csv": report_csv(report),
        "txt": report_text(report),
        "md": report_markdown(report),
        "html": report_html(report),
        "xml": report_junit(report),
        "github-action-benchmark": throughput_json(report),
        "bmf": bencher_json(report),
    }


def loaded_by(code: str, *names: str) -> list[str]:
    """Return the modules, of these and below them, that a new interpreter has loaded after the code."""
    listing = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return [module for module in done.stdout.split() for name in names if f"{module}.".startswith(f"{name}.")]


def test_nothing_heavy_is_loaded_before_a_format_is_used() -> None:
    assert loaded_by("import sqlstress.show.formats", "tabulate", "csv", "click", "sqlstress.report") == []


def test_rendering_needs_neither_the_engine_nor_a_driver() -> None:
    rendered = ("text", "markdown", "csv_file", "junit", "trackers", "github")
    code = "import " + ", ".join(f"sqlstress.show.{name}" for name in rendered)
    rooms = ("engine", "machine", "targets.sqlite", "targets.native", "targets.postgres", "cli")
    assert loaded_by(code, "sqlite3", "apsw", *(f"sqlstress.{room}" for room in rooms)) == []
    assert "tabulate" in loaded_by(code, "tabulate")
