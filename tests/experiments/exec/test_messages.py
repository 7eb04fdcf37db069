"""Messages are counted by kind, whatever numbers and paths they have, and never more than a few kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.exec.worker import LONGEST, MOST_KINDS, OTHERS, Messages, kind_of, line_of

TRACEBACK = """Traceback (most recent call last):
  File "/app/tool.py", line 12, in <module>
    add()
sqlite3.OperationalError: database is locked
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Error: stepping, database is locked (5)\n", "Error: stepping, database is locked (5)"),
        ("\n  usage: tool\nmore\n", "usage: tool"),
        (TRACEBACK, "sqlite3.OperationalError: database is locked"),
        (f"{TRACEBACK}DETAIL: more\nHINT: again\n", "sqlite3.OperationalError: database is locked"),
        (
            f"{TRACEBACK}\nDuring handling:\n\n{TRACEBACK.replace('locked', 'gone')}",
            "sqlite3.OperationalError: database is gone",
        ),
        ("Traceback (most recent call last):\n  | cut off", "| cut off"),
        ("\x1b[31mred\x1b[0m\n", "[31mred [0m"),
        ("", ""),
        (" \n\t\n", ""),
    ],
)
def test_the_line_that_says_what_was_wrong(text: str, line: str) -> None:
    assert line_of(text) == line


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("locked (5)", "locked (17)"),
        ("cannot open /tmp/a/kv.db", "cannot open /var/b.db"),
        ("cannot open ./kv.db", "cannot open ../x/kv.db"),
        (r"cannot open C:\data\kv.db", r"cannot open D:\x.db"),
        ("at 0x7ffe, 3.5 s", "at 0x11, 12 s"),
        ("2026-11-22 10:00:01 busy", "2027-01-02 23:59:59 busy"),
    ],
)
def test_numbers_and_paths_make_no_kind(one: str, other: str) -> None:
    assert kind_of(one) == kind_of(other)


@pytest.mark.parametrize(
    ("one", "other"), [("locked", "busy"), ("table t1", "table t2"), ("and/or", "either/or")]
)
def test_words_make_kinds(one: str, other: str) -> None:
    assert kind_of(one) != kind_of(other)


def test_of_each_kind_the_first_is_kept() -> None:
    messages = Messages()
    for number in range(5):
        messages.add(f"locked ({number})")
    messages.add("gone")
    messages.add("")
    assert messages.counts == {"locked (N)": 5, "gone": 1}
    assert messages.examples == {"locked (N)": "locked (0)", "gone": "gone"}


@given(st.lists(st.text(), max_size=60))
def test_every_message_is_counted_and_memory_is_bounded(texts: list[str]) -> None:
    messages = Messages()
    for text in texts:
        messages.add(text)
    assert sum(messages.counts.values()) == sum(1 for text in texts if line_of(text))
    assert len(messages.counts) <= MOST_KINDS + (OTHERS in messages.counts)
    assert all(len(text) <= LONGEST for text in messages.examples.values())
