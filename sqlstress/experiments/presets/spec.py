"""What is asked for where published settings are compared."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import REST, option
from sqlstress.options.parsing import duration, switch, whole

COMPARED = "What is compared"
MOST_ROUNDS = 500


@dataclass(frozen=True, slots=True)
class Nothing:
    """A comparison says nothing in a case: those that it measures are of the load."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Which presets are measured, and how often."""

    compare: str | None = option(
        str, None, COMPARED, "Presets to measure: rails,django; all for every one.", metavar="LIST"
    )
    against: str = option(
        str,
        "default",
        COMPARED,
        "What they are set against: default (your own settings), or one of them.",
        metavar="NAME",
    )
    rounds: int = option(
        whole(3, MOST_ROUNDS), 10, COMPARED, "Rounds: in each every preset is measured once."
    )
    max_time: float = option(
        duration(1.0),
        "20m",
        COMPARED,
        "No other round is begun where it would end later.",
        metavar="DURATION",
    )
    strict: bool = option(switch, None, COMPARED, "Exit 3 when something can't be told.", flag=True)
    load: tuple[str, ...] = option(
        tuple,
        None,
        COMPARED,
        "Your load, behind --: options of kv, or another command and its options.",
        metavar="[-- OPTIONS OF THE LOAD]",
        argument=REST,
    )
