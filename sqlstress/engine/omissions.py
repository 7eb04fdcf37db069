"""Measurements that a process of an A/B test leaves out, because an earlier process made them.

An environment variable names these measurements: older versions of sqlstress would refuse an option, but they
ignore an unknown variable.
"""

from __future__ import annotations

import os

VARIABLE = "SQLSTRESS_OMIT"
"""Environment variable with the names of omitted measurements, separated by spaces."""
COSTS = "costs"
"""Costs of a sync and of our own code. Reports need the cost of a sync, so some syncs are still timed."""
REHEARSAL = "rehearsal"
"""Rehearsal, which is a run of the user's work on a copy of the data."""
RERUNS = "reruns"
"""Repeats of trials that other programs disturbed."""


def is_omitted(name: str) -> bool:
    """Return whether this process leaves a measurement out."""
    return name in os.environ.get(VARIABLE, "").split()
