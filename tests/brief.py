"""Runs that take less time, where nothing that is tested depends on it: python -m tests.brief ARGUMENTS."""

from __future__ import annotations

import sys
from typing import Any

PROGRAM = (sys.executable, "-m", "tests.brief")
"""sqlstress in a process of its own, with this checkout among PYTHONPATH."""
SYNCS = 8


def changes() -> list[tuple[dict[str, Any], str, object]]:
    """Return what is to be changed: few samples of what a sync costs.

    And no trial is run again since the tests beside it took the processors.
    """
    from sqlstress.engine import trial
    from sqlstress.machine import sync_cost

    return [(vars(sync_cost), "MOST", SYNCS), (vars(trial), "MAX_RERUNS", 0)]


def make_brief() -> None:
    """Change it for good, in a process of its own."""
    for names, name, value in changes():
        assert name in names
        names[name] = value


if __name__ == "__main__":
    from sqlstress.__main__ import main

    make_brief()
    sys.exit(main())
