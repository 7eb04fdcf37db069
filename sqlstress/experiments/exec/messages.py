"""What commands write on standard error, by kind: numbers and paths say nothing of the kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

MOST_KINDS = 20
OTHERS = "other kinds"
LONGEST = 200
"""Characters of a message that are kept."""
_TRACEBACK = "Traceback (most recent call last)"
_PATH = re.compile(r"(?<![\w<])(?:[A-Za-z]:|\.{1,2}|~)?[\\/][\w.\\/~+@%-]*\w")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![A-Za-z_])\d+(?:[.,:]\d+)*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def line_of(text: str) -> str:
    """Return the line that says what was wrong: the first one, of a traceback the exception; "" if none."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    line = _raised(lines) if _TRACEBACK in text else lines[0]
    return _CONTROL.sub(" ", line).strip()[:LONGEST]


def _raised(lines: Sequence[str]) -> str:
    """Return the exception of the last traceback: what comes behind its frames, which are indented."""
    last = max(place for place, line in enumerate(lines) if _TRACEBACK in line)
    return next((line for line in lines[last + 1 :] if not line[0].isspace()), lines[-1])


def kind_of(line: str) -> str:
    """Return what such lines have in common."""
    return _NUMBER.sub("N", _PATH.sub("PATH", line))


class Messages:
    """Counts messages by kind: of each the first is kept, and so many kinds."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        """`hidden` takes out of a text what may not be shown."""
        self._hidden = hidden
        self.counts: dict[str, int] = {}
        self.examples: dict[str, str] = {}

    def add(self, text: str) -> None:
        """Count what a command wrote; nothing is not counted."""
        line = line_of(self._hidden(text))
        if not line:
            return
        kind = kind_of(line)
        if kind not in self.counts and len(self.counts) >= MOST_KINDS:
            kind = OTHERS
        self.examples.setdefault(kind, line)
        self.counts[kind] = self.counts.get(kind, 0) + 1
