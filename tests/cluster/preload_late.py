"""A preload for workers in tests: a host as in preload_host, which joins when there is a file `called`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.cluster import preload_host


def dask_setup(worker: Any) -> None:
    """Wait, with all imported, which takes seconds on a busy machine."""
    preload_host.dask_setup(worker)
    while not Path("called").exists():
        time.sleep(0.02)
