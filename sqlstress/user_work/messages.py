"""What programs say when something goes wrong: the line that says it, and what such lines have in common."""

from __future__ import annotations

import re

OTHERS = "other kinds"
LONGEST = 200
"""Characters of a message that are kept."""
_TRACEBACK = "Traceback (most recent call last)"
_PATH = re.compile(r"(?<![\w<])(?:[A-Za-z]:|\.{1,2}|~)?[\\/][\w.\\/~+@%-]*\w")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![A-Za-z_])\d+(?:[.,:]\d+)*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


_SAYS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^\s*(?:Caused by|\[cause\]):\s+(?:0: )?(.+)",  # Java, Node, Rust: the last one is the root
        r"^[ \t]*\^[\^~ \t]*\n\s*(\S.*)",  # Node: behind the place in the source
        r'^Exception in thread "[^"]*" (.+)',  # Java
        r"^((?:panic|fatal error): .+)",  # Go
        r"^(\S.*)\n\s+at ",  # Node, Java: before the frames
        r"^\S+:\d+:in .+?: (.+ \([A-Z][\w:]*\))$",  # Ruby
        r"^(?:PHP )?(?:Fatal|Parse) error:\s+(.+)",
        r"^(.*(?i:\b(?:error|fatal|exception)\b|locked).*)$",
    )
)
"""Which line says what was wrong, the surest first."""


def line_of(text: str) -> str:
    """Return the line that says what was wrong, as languages write it; otherwise the first; "" if none."""
    lines = [line for line in text.splitlines() if line.strip()]
    tracebacks = [place for place, line in enumerate(lines) if _TRACEBACK in line]
    if tracebacks:
        # It comes behind the frames of the last one, which are indented.
        behind = lines[tracebacks[-1] + 1 :]
        lines = [line for line in behind if not line[0].isspace()] or lines[-1:]
    else:
        lines = _by_pattern("\n".join(lines)) or lines
    return _CONTROL.sub(" ", lines[0]).strip()[:LONGEST] if lines else ""


def _by_pattern(text: str) -> list[str]:
    for place, pattern in enumerate(_SAYS):
        if found := pattern.findall(text):
            return [found[-1] if place == 0 else found[0]]
    return []


def kind_of(line: str) -> str:
    """Return what such lines have in common."""
    return _NUMBER.sub("N", _PATH.sub("PATH", line))
