"""Checks of each format of a report with any content: it is well formed and has no active content."""

import csv
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import NoReturn
from xml.etree import ElementTree

_UNESCAPED_BAR = re.compile(r"(?<!\\)(?:\\\\)*\|")
_FORMULA = re.compile(r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")


def check_text(text: str) -> None:
    """Check that the text has no control characters except line ends."""
    assert all(line.isprintable() for line in text.split("\n"))


def check_markdown(text: str) -> None:
    """Check that there is no HTML markup, and that rows of a table have equally many cells."""
    check_text(text)
    outside = re.sub(r"^```\n.*?^```$", "", text, flags=re.M | re.S)
    assert not re.search(r"[<>]|(?<!\\)(?:\\\\)*`", outside)
    for block in outside.split("\n\n"):
        if block.startswith("|"):
            assert len({len(_UNESCAPED_BAR.findall(row)) for row in block.strip("\n").split("\n")}) == 1


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


def check_xml(text: str) -> None:
    """Check that it is well-formed XML without elements from the report's texts."""
    assert {element.tag for element in ElementTree.fromstring(text).iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped",
        "system-out",
    }  # fmt: skip


def check_json(text: str) -> None:
    """Check that it is JSON in ASCII."""

    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} is not JSON")

    assert text.isascii()
    json.loads(text, parse_constant=refuse)


class _Page(HTMLParser):
    """Collects scripts, active elements and event attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.acting: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        if tag in ("img", "iframe", "svg", "object", "embed", "a", "form", "base"):
            self.acting.append(tag)
        self.acting += [
            name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")
        ]


def check_html(text: str) -> None:
    """Check that the page has only our data and script, and nothing else that is active or loaded."""
    page = _Page()
    page.feed(text)
    assert page.scripts == 2
    assert page.acting == []


def check_annotations(text: str) -> None:
    """Check that each line is a workflow command that sqlstress writes."""
    check_text(text)
    assert all(re.fullmatch(r"::(error|warning) title=[^:,]*::.*", line) for line in text.splitlines())


CHECKS: dict[str, Callable[[str], None]] = {
    "txt": check_text,
    "md": check_markdown,
    "csv": check_csv,
    "xml": check_xml,
    "html": check_html,
    "json": check_json,
    "bmf": check_json,
    "github-action-benchmark": check_json,
}
"""Format → check of its text."""
