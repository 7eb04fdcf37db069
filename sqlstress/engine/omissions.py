"""Measurements that a slice of an A/B test leaves out, because the test has them from an earlier slice.

An environment variable names the omitted measurements. An older version of sqlstress ignores the variable,
but would refuse an unknown option.
"""

from __future__ import annotations

import os

VARIABLE = "SQLSTRESS_OMIT"
"""Variable of the environment with the names of omitted measurements, separated by spaces."""
COSTS = "costs"
"""Name of the costs of a sync and of the harness. A report must have a sync cost, so a few samples remain."""
REHEARSAL = "rehearsal"
"""Name of the rehearsal."""
RERUNS = "reruns"
"""Name of the repeats of trials during which other programs took a large share of the processors."""


def is_omitted(name: str) -> bool:
    """Return whether this process leaves a measurement out."""
    return name in os.environ.get(VARIABLE, "").split()
