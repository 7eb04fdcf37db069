"""Measurements that a slice of an A/B test leaves out, because the test uses those of an earlier slice.

A variable of the environment names them: an older sqlstress ignores it, but would refuse an unknown option.
"""

from __future__ import annotations

import os

VARIABLE = "SQLSTRESS_OMIT"
"""Variable of the environment with the names of omitted measurements, separated by spaces."""
COSTS = "costs"
"""Name of the costs of a sync and of the harness. The report needs a cost of a sync: it has few samples."""
REHEARSAL = "rehearsal"
"""Name of the rehearsal."""
RERUNS = "reruns"
"""Name of the repeats of trials during which other programs took a large share of the processors."""


def is_omitted(name: str) -> bool:
    """Return whether this process leaves a measurement out."""
    return name in os.environ.get(VARIABLE, "").split()
