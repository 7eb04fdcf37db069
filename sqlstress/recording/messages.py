"""Error messages of the user's programs: the line with the error, and a key for similar messages."""

from __future__ import annotations

import re

OTHER_KINDS = "other kinds"
MAX_CHARS = 200
"""Maximum length of a message, in characters."""
_TRACEBACK = "Traceback (most recent call last)"
_PATH = re.compile(r"(?<![\w<])(?:[A-Za-z]:|\.{1,2}|~)?[\\/][\w.\\/~+@%-]*\w")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![A-Za-z_])\d+(?:[.,:]\d+)*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


_ERROR_LINES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^\s*(?:Caused by|\[cause\]):\s+(?:0: )?(.+)",  # Java, Node, Rust: the last one is the root
        r"^[ \t]*\^[\^~ \t]*\n\s*(\S.*)",  # Node: after the ^ that marks a position in the source
        r'^Exception in thread "[^"]*" (.+)',  # Java
        r"^((?:panic|fatal error): .+)",  # Go
        r"^(\S.*)\n\s+at ",  # Node, Java: before the frames
        r"^\S+:\d+:in .+?: (.+ \([A-Z][\w:]*\))$",  # Ruby
        r"^(?:PHP )?(?:Fatal|Parse) error:\s+(.+)",
        r"^(.*(?i:\b(?:error|fatal|exception)\b|locked).*)$",
    )
)
"""Patterns of the line with the error, the most reliable first."""


def error_line(text: str) -> str:
    """Return the line with the error in a program's output; if no line matches, its first line.

    The patterns cover the formats of many programming languages. The result is "" for no output.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    tracebacks = [place for place, line in enumerate(lines) if _TRACEBACK in line]
    if tracebacks:
        # The error follows the frames of the last traceback, which are indented.
        behind = lines[tracebacks[-1] + 1 :]
        lines = [line for line in behind if not line[0].isspace()] or lines[-1:]
    else:
        lines = _by_pattern("\n".join(lines)) or lines
    return _CONTROL.sub(" ", lines[0]).strip()[:MAX_CHARS] if lines else ""


def source_line(text: str, error: str) -> str:
    """Return the source line above a traceback's error line; "" if there is none.

    Lines of ^ and ~, by which Python and Node mark a position, are skipped.
    """
    lines = [line.strip() for line in text.partition(error)[0].splitlines() if line.strip(" \t^~")]
    return _CONTROL.sub(" ", lines[-1])[:MAX_CHARS] if lines else ""


def _by_pattern(text: str) -> list[str]:
    for place, pattern in enumerate(_ERROR_LINES):
        if matches := pattern.findall(text):
            return [matches[-1] if place == 0 else matches[0]]
    return []


def group_key(line: str) -> str:
    """Return the line with paths and numbers replaced by PATH and N, as a key for similar messages."""
    return _NUMBER.sub("N", _PATH.sub("PATH", line))
