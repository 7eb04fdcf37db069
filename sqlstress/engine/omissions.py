"""Measurements that a process of an A/B test omits, because an earlier process made them.

An environment variable names them: older versions of sqlstress ignore an unknown variable, but would refuse
an option.
"""

from __future__ import annotations

import os

VARIABLE = "SQLSTRESS_OMIT"
"""Name of the environment variable that lists the omitted measurements, separated by spaces."""
COSTS = "costs"
"""Cost of a sync and overhead of sqlstress. A few syncs are still timed, for the report."""
REHEARSAL = "rehearsal"
"""Rehearsal: a run of the user's work on a copy of the data."""
RERUNS = "reruns"
"""Repeats of trials that other programs disturbed."""


def is_omitted(name: str) -> bool:
    """Return whether this process omits the measurement `name`, such as COSTS."""
    return name in os.environ.get(VARIABLE, "").split()
