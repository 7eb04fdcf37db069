"""What must hold of a report in each format, whatever it says: it is well formed, and nothing of it acts."""

from __future__ import annotations

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
    """No character but line ends is one that a terminal obeys."""
    assert all(line.isprintable() for line in text.split("\n"))


def check_markdown(text: str) -> None:
    """No markup of HTML comes in, and each row of a table has its table's cells."""
    check_text(text)
    outside = re.sub(r"^```\n.*?^```$", "", text, flags=re.M | re.S)
    assert not re.search(r"[<>]|(?<!\\)(?:\\\\)*`", outside)
    for block in outside.split("\n\n"):
        if block.startswith("|"):
            assert len({len(_UNESCAPED_BAR.findall(row)) for row in block.strip("\n").split("\n")}) == 1


def check_csv(text: str) -> None:
    """Rows have the header's fields, and none of them begins as a formula does."""
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
    """It is well-formed XML: no control character, no markup of the report's."""
    assert {element.tag for element in ElementTree.fromstring(text).iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped",
        "system-out",
    }  # fmt: skip


def check_json(text: str) -> None:
    """It is JSON, and ASCII."""

    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} is not JSON")

    assert text.isascii()
    json.loads(text, parse_constant=refuse)


class _Page(HTMLParser):
    """Collects what a page is made of."""

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
    """It has our data and our script, and nothing else that acts or loads."""
    page = _Page()
    page.feed(text)
    assert page.scripts == 2
    assert page.acting == []


def check_annotations(text: str) -> None:
    """Each line is one command of ours, as the runner reads it."""
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
"""Format → what holds of it."""
