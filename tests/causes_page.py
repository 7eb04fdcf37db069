"""Write the table of causes in docs/locked.md: `python -m tests.causes_page`, after changing the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from sqlstress.analysis.causes import RULES, Facts, Rule
from sqlstress.sqlite_codes import NAMES, name

PAGE = Path(__file__).parents[1] / "docs" / "locked.md"
_SECTION = re.compile(r"(?<=<!-- causes -->\n).*?(?=<!-- end of causes -->)", re.DOTALL)
_CONDITIONS = {
    ("waited", "at once"): "after 0 s",
    ("waited", "the timeout"): "after the timeout",
    ("timeout", "none"): "busy timeout 0",
    ("timeout", "short"): "below 100 ms",
    ("timeout", "set"): "a busy timeout",
    ("statement", "journal_mode"): "at `PRAGMA journal_mode`",
    ("statement", "checkpoint"): "at a checkpoint",
    ("statement", "commit"): "at COMMIT",
    ("transaction", "read"): "the transaction had read",
    ("journal", "rollback"): "rollback journal",
    ("journal", "wal"): "WAL",
    ("open_cursor", True): "a SELECT of the connection is open",
    ("open_cursor", False): "no SELECT is open",
    ("open_blob", True): "a blob handle is open",
    ("shared_cache", True): "`cache=shared`",
    ("exclusive", True): "`locking_mode=EXCLUSIVE`",
    ("busy_handler", True): "busy handler set",
    ("repeated", True): "the same statement has failed before",
    ("other_file", True): "the transaction holds another file",
    ("left_open", True): "an earlier call began the transaction",
    ("rolled_back", True): "the transaction is over",
    ("shared_connection", True): "threads or tasks share the connection",
    ("holder", "this process"): "the holder is idle in the same process",
}


def tables() -> str:
    """Return the causes as a Markdown table, a row for each rule."""
    return "\n".join(["", "| error | facts | cause | cure |", "|---|---|---|---|", *map(_row, RULES), "", ""])


def page() -> str:
    """Return the page with its table renewed."""
    return _SECTION.sub(lambda _: tables(), PAGE.read_text(encoding="utf-8"))


def _row(rule: Rule) -> str:
    return (
        f"| {', '.join(map(_name, rule.codes))} | {', '.join(_facts(rule))} | {rule.cause} | {rule.advice} |"
    )


def _name(code: int) -> str:
    return f"{code} {NAMES[code].removeprefix('SQLITE_')}" if code > 0 else name(code)


def _facts(rule: Rule) -> Iterator[str]:
    for field in fields(Facts):
        value = getattr(rule.when, field.name)
        if value is not None:
            yield _CONDITIONS[field.name, value]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
