"""Report: the saved document, and its way to disk and back.

Format history (the major number changes when a reader of the old one would be misled):
1.0  first version.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlstress import __version__, jsonable
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.report.environment import Environment
from sqlstress.report.results import Run

FORMAT_VERSION = "1.0"


@dataclass(frozen=True, slots=True)
class Report:
    """What is saved after every case."""

    created: str
    """When the measurement began: ISO 8601, UTC."""
    command: tuple[str, ...]
    """The command line, so that it can be run again."""
    environment: Environment
    runs: tuple[Run, ...] = ()
    planned: int = 0
    """Number of cases that the plan holds."""
    interrupted: bool = False
    """Stopped before every planned case had run."""
    format_version: str = FORMAT_VERSION
    """major.minor of this format."""
    tool_version: str = __version__
    """Version of sqlstress that measured."""


def to_json(report: Report) -> str:
    """Write a report as JSON text."""
    return json.dumps(jsonable.to_plain(report), indent=1, allow_nan=False) + "\n"


def from_json(text: str) -> Report:
    """Read a report; unknown keys are ignored, an unknown major version is refused with UsageError."""
    try:
        plain: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not a sqlstress report: {error}") from error
    version = plain.get("format_version") if isinstance(plain, dict) else None
    if not isinstance(version, str):
        raise UsageError("not a sqlstress report: it has no format_version")
    if version.split(".")[0] != FORMAT_VERSION.split(".")[0]:
        raise UsageError(
            f"the report has format {version[:20]}, this sqlstress reads {FORMAT_VERSION}: use the version that wrote it"
        )
    try:
        return jsonable.from_plain(Report, plain)
    except ValueError as error:
        raise UsageError(f"not a sqlstress report: {error}") from error


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part of it."""
    temporary = path.with_name(f".{path.name}.sqlstress-tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise EnvironmentFailure(f"cannot write {path}: {error.strerror}; choose another file with -o") from error
