"""Names of hosts as names of files: whatever a host calls itself, its report stays in the folder."""

from __future__ import annotations

import re
from collections.abc import Collection

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LONGEST = 64


def file_name(host: str, taken: Collection[str]) -> str:
    """Return a name that every system takes for a file, and that no host has yet, whatever its case."""
    name = _OTHER.sub("_", host).strip("._")[:_LONGEST] or "host"
    if _RESERVED.fullmatch(name):
        name = f"_{name}"
    used = {one.lower() for one in taken}
    if name.lower() not in used:
        return name
    return next(
        numbered for number in range(2, len(used) + 3) if (numbered := f"{name}-{number}").lower() not in used
    )
