"""Tests of the formats that can be written, and of the cost of importing them."""

import subprocess
import sys


def loaded_by(code: str, *names: str) -> list[str]:
    """Return the modules among `names`, and their submodules, that a new interpreter loads for the code."""
    listing = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return [module for module in done.stdout.split() for name in names if f"{module}.".startswith(f"{name}.")]


def test_heavy_modules_are_loaded_only_when_a_format_is_used() -> None:
    assert loaded_by("import sqlstress.show.formats", "tabulate", "csv", "click", "sqlstress.report") == []


def test_rendering_needs_neither_the_engine_nor_a_driver() -> None:
    rendered = ("text", "markdown", "csv_file", "junit", "trackers", "github")
    code = "import " + ", ".join(f"sqlstress.show.{name}" for name in rendered)
    rooms = ("engine", "machine", "targets.sqlite", "targets.native", "targets.postgres", "cli")
    assert loaded_by(code, "sqlite3", "apsw", *(f"sqlstress.{room}" for room in rooms)) == []
    assert "tabulate" in loaded_by(code, "tabulate")
