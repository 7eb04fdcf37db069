"""A preload for workers in tests: a host as in preload_host, whose measurements see clocks that are wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sqlstress.cluster import job
from tests.cluster import preload_host

SKEW_NS = 5_000_000_000


def dask_setup(worker: Any) -> None:
    """Let what this worker starts be five seconds ahead."""
    preload_host.dask_setup(worker)
    os.environ["TEST_SKEW_NS"] = str(SKEW_NS)
    # Dask runs a copy of this file, in a folder of its own.
    skewed = Path(job.__file__).parents[2] / "tests" / "cluster" / "skewed"
    os.environ["PYTHONPATH"] = f"{skewed}{os.pathsep}{os.environ['PYTHONPATH']}"
