"""What reports are called: as their files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def short_names(files: Sequence[Path]) -> list[str]:
    """Return the files' names without suffix, and as much of their folders as tells them apart."""
    paths = [file.absolute() for file in files]
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.with_suffix("").parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [path.name for path in paths]
