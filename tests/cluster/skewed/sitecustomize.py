"""Clocks of a host in tests: a process with this folder in its PYTHONPATH is ahead of the true time."""

from __future__ import annotations

import os
import time


def _shift(name: str, ns: int) -> None:
    true = getattr(time, name)
    setattr(time, name, lambda: true() + ns)


_shift("perf_counter_ns", int(os.environ["TEST_SKEW_NS"]))
_shift("time_ns", int(os.environ["TEST_SKEW_NS"]))
