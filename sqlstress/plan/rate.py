"""The cases of an experiment that has both loops: closed, or open at each rate that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.plan.ask import Ask
from sqlstress.report.case import Case

AT_A_RATE = ("rate", "arrival", "latency-limit")
"""The options of an open loop."""


def at_rates(asked: Ask[Any, Any], case: Case) -> Iterator[Case]:
    """Yield a case at each rate; as it is, in a closed loop, where none was asked for."""
    for rate in asked.some("rate"):
        yield (
            case
            if rate is None
            else replace(case, arrivals=asked.case.arrivals and asked.case.arrivals.at(rate))
        )


def check_rate(asked: Ask[Any, Any]) -> None:
    """Raise UsageError for what means something at a rate only, or nothing at one."""
    if asked.case.arrivals is None:
        for name in AT_A_RATE[1:]:
            if name in asked.given:
                raise UsageError(f"--{name} is for operations that are due at a rate: add --rate.")
    elif asked.case.ops is not None:
        raise UsageError("--rate needs a window: leave out --ops or --rate.")
