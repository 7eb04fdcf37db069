"""A preload for workers in tests: simulates a host without sqlstress."""

import sys
from importlib.abc import MetaPathFinder
from typing import Any


class NotThere(MetaPathFinder):
    """Fails to find sqlstress, with Python's own message."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "sqlstress":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def dask_setup(worker: Any) -> None:
    """Unload sqlstress and prevent its import."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "sqlstress"]:
        del sys.modules[name]
    sys.meta_path.insert(0, NotThere())
