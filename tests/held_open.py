"""A file that another program has open, as on Windows: it cannot be removed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def held_open(*names: str) -> Iterator[None]:
    """Refuse to remove files with these names; simulated except on Windows."""
    unlink = Path.unlink

    def refuse(self: Path, missing_ok: bool = False) -> None:
        if self.name in names and self.exists():
            if sys.platform == "win32":
                with self.open("rb"):
                    unlink(self, missing_ok)
            raise PermissionError(13, "used by another process")
        unlink(self, missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        patch.setattr("sqlstress.system.files._PAUSE_S", 0.0)
        yield
