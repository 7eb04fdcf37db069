"""Checks of each format of a report with any content: it is well formed and has no active content."""

import csv
import io
import json
import re
from collections.abc import Callable

import pytest

from tests.show.page.test_html_file import check_markup
from tests.show.test_junit import check_xml
from tests.show.test_markdown import check_markdown

_FORMULA = re.compile(r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")


def check_text(text: str) -> None:
    """Check that the text has no control characters except line ends."""
    assert all(line.isprintable() for line in text.split("\n"))


def check_csv(text: str) -> None:
    """Check that rows have the header's number of fields, and that no field begins like a formula."""
    check_text(text)
    header, *rows = csv.reader(io.StringIO(text))
    assert {len(row) for row in rows} <= {len(header)}
    assert not [
        cell for row in (header, *rows) for cell in row if _FORMULA.match(cell) and not _is_number(cell)
    ]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def check_json(text: str) -> None:
    """Check that it is JSON in ASCII."""
    assert text.isascii()
    json.loads(text, parse_constant=pytest.fail)


CHECKS: dict[str, Callable[[str], None]] = {
    "txt": check_text,
    "md": check_markdown,
    "csv": check_csv,
    "xml": check_xml,
    "html": check_markup,
    "json": check_json,
    "bmf": check_json,
    "github-action-benchmark": check_json,
}
"""Format → check of its text."""
