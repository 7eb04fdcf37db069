"""Strings from elsewhere (a device, an error, a saved report), made safe for a terminal and a page."""

from __future__ import annotations

import re
import unicodedata

# ECMA-48: control sequences (CSI), and control strings (OSC, DCS, …) with what they carry. One that
# nothing ends loses its introducer only, or it would swallow the rest of the sentence around it. None
# carries the introducer of another, or each of a row of them would be read on to the end of the row.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,2048}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{0,8}[0-~]?"
)
# Controls, formatting (such as a change of the writing direction), half characters, unassigned ones.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_LONGEST = 800


def clean(text: str) -> str:
    """Return one line of visible characters: no escape sequences, no controls, runs of spaces as one."""
    return " ".join(visible(text).split())


def visible(text: str) -> str:
    """Return one line of visible characters in which every space stays where it is."""
    if text.isascii() and text.isprintable():
        return text  # as nearly every text is
    return "".join(map(_visible, _SEQUENCES.sub("", text)))


def brief(text: str) -> str:
    """Return a cleaned text of ten lines at most; a cut one says so."""
    cleaned = clean(text)
    return cleaned if len(cleaned) <= _LONGEST else f"{cleaned[: _LONGEST - 6]} [...]"


def shortened(text: str, longest: int) -> str:
    """Return a cleaned text of so many characters at most; of a cut one the last ones are dots."""
    cleaned = clean(text)
    return cleaned if len(cleaned) <= longest else f"{cleaned[: longest - 2]}.."


def _visible(character: str) -> str:
    if character.isspace():
        return " "
    return "?" if unicodedata.category(character) in _UNSEEN else character
