"""A preload for workers in tests: a host on which sqlstress is not installed."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any


class NotThere(MetaPathFinder):
    """Finds no sqlstress, in the words of Python."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "sqlstress":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def dask_setup(worker: Any) -> None:
    """Take sqlstress away."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "sqlstress"]:
        del sys.modules[name]
    sys.meta_path.insert(0, NotThere())
