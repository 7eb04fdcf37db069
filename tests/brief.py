"""Runs that take less time, where nothing that is tested depends on it."""

from __future__ import annotations

from typing import Any

SYNCS = 8
LEAD_S = 0.1
"""A worker that hears of the window too late is waited for, and the trial tried again."""


def changes() -> list[tuple[dict[str, Any], str, object]]:
    """Return what is to be changed: few samples of what a sync costs, a window that soon begins.

    And no trial is run again since the tests beside it took the processors.
    """
    from sqlstress.engine import trial, window
    from sqlstress.environment import synccost

    return [(vars(synccost), "MOST", SYNCS), (vars(window), "LEAD_S", LEAD_S), (vars(trial), "PATIENCE", 0)]


def make_brief() -> None:
    """Change it for good, in a process of its own."""
    for names, name, value in changes():
        names[name] = value
