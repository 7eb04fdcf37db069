"""Measurements that a process of an A/B test omits, because an earlier process made them.

An environment variable names them: older versions of sqlstress ignore an unknown variable, but would refuse
an option.
"""

from __future__ import annotations

import os

VARIABLE = "SQLSTRESS_OMIT"
"""Name of the environment variable that lists the omitted measurements, separated by spaces."""
COSTS = "costs"
"""Name of the measurements of a sync's cost and of sqlstress's overhead. A few syncs are still timed."""
REHEARSAL = "rehearsal"
"""Name of the rehearsal, a run of the user's work on a copy of the data before the trials."""
RERUNS = "reruns"
"""Name of the repeats of trials that other programs disturbed."""


def is_omitted(name: str) -> bool:
    """Return whether this process omits the measurement `name`, such as COSTS."""
    return name in os.environ.get(VARIABLE, "").split()
