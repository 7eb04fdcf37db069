"""The loop in C waits as the one in Python does."""

from __future__ import annotations

import re
from pathlib import Path

from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.sqlite import native, waiting

SOURCE = Path(str(native.__file__)).with_name("waiting.c")


def test_both_have_the_same_numbers() -> None:
    found = dict(re.findall(r"^#define (\w+) ([\d.]+)$", SOURCE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name: float(number) for name, number in found.items()} == {
        "FIRST": waiting.FIRST,
        "PATIENCE": waiting.PATIENCE,
        "SHARE_LEFT": waiting.SHARE_LEFT,
        "SHORTEST_NS": waiting.SHORTEST_S * NS_PER_S,
        "TURN_NS": waiting.TURN_S * NS_PER_S,
        "PAUSE_NS": waiting.PAUSE_S * NS_PER_S,
    }
