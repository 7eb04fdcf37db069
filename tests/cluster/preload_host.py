"""A preload for workers in tests: each is a machine, called as its worker is up to the last dash."""

from __future__ import annotations

from typing import Any

from sqlstress.cluster import job


def dask_setup(worker: Any) -> None:
    """Let the worker's host be called "anna" if the worker is called "anna-1"."""
    name = str(worker.name).rpartition("-")[0]
    job.host_name = lambda: name
    job.machine = lambda: name
