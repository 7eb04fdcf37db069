"""A preload for workers in tests: each worker's machine has the worker's name up to the last dash."""

from typing import Any

from sqlstress.cluster import job


def dask_setup(worker: Any) -> None:
    """Give the worker's host the name "anna" if the worker has the name "anna-1"."""
    name = str(worker.name).rpartition("-")[0]
    job.identity = lambda: (name, name)
    job.TURN_PORT = 21_000 + int.from_bytes(name[:2].encode()) % 5_000
