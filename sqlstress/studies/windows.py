"""Which commands a study can measure case by case: those whose cases have windows."""

from __future__ import annotations

from sqlstress.experiment import Experiment, commands


def with_windows() -> dict[str, Experiment]:
    """Return them, in their order."""
    return {name: one for name, one in commands().items() if one.behaviour.windowed and not one.study}
