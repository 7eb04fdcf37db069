"""Measurements that a process of an A/B test leaves out, because an earlier process made them.

An environment variable names them: older versions of sqlstress ignore it, but would refuse an option.
"""

from __future__ import annotations

import os

VARIABLE = "SQLSTRESS_OMIT"
"""Environment variable with the names of omitted measurements, separated by spaces."""
COSTS = "costs"
"""Name of the costs of a sync and of our own code. Some syncs are still timed: a report needs their cost."""
REHEARSAL = "rehearsal"
"""Name of the rehearsal, a run of the user's work on a copy of the data."""
RERUNS = "reruns"
"""Name of the repeats of trials that other programs disturbed."""


def is_omitted(name: str) -> bool:
    """Return whether this process leaves a measurement out."""
    return name in os.environ.get(VARIABLE, "").split()
