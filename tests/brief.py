"""sqlstress, faster where no test depends on the result: python -m tests.brief ARGUMENTS."""

import sys
from typing import Any

PROGRAM = (sys.executable, "-m", "tests.brief")
"""Command of sqlstress in a separate process; needs this checkout in PYTHONPATH."""
SYNCS = 8
HARNESS_NS = 10_000_000


def changes() -> list[tuple[dict[str, Any], str, object]]:
    """Return the changes, as (namespace, name, value): fewer and shorter samples, no repeated trials.

    Trials would otherwise be repeated because other tests use the processors.
    """
    from sqlstress.engine import harness_cost, trial
    from sqlstress.machine import sync_cost

    return [
        (vars(sync_cost), "MOST", SYNCS),
        (vars(harness_cost), "WARM_NS", 0),
        (vars(harness_cost), "LENGTH_NS", HARNESS_NS),
        (vars(trial), "MAX_RERUNS", 0),
    ]


def make_brief() -> None:
    """Apply the changes for the rest of this process."""
    for names, name, value in changes():
        assert name in names
        names[name] = value


if __name__ == "__main__":
    from sqlstress.__main__ import main

    make_brief()
    sys.exit(main())
