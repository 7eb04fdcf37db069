"""The options of A/B tests: what is compared, and those of the main experiment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlstress.experiment import DEFAULT, face
from sqlstress.options.option import Option, chosen, option, options_of
from sqlstress.options.parsing import choice, duration, percentage, switch, whole
from sqlstress.statistics import gate

COMPARED = "What is compared"
CONCURRENCY = "2"
_NOT_HERE = ("repeat", "preset")
"""Options of the experiment that mean nothing where slices are measured in turns."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What is compared, and when it fails."""

    a: str = option(str, "", COMPARED, 'Options of A, the baseline: "--synchronous full".', metavar="OPTIONS")
    b: str = option(str, "", COMPARED, "Options of B, which is compared with A.", metavar="OPTIONS")
    python_a: str | None = option(str, None, COMPARED, "Interpreter that measures A.", metavar="PYTHON")
    python_b: str | None = option(str, None, COMPARED, "Interpreter that measures B.", metavar="PYTHON")
    metric: str = option(
        choice(*gate.METRICS), "tps", COMPARED, "tps, or p99 of all operations.", metavar="NAME"
    )
    max_drop: float = option(
        percentage(0.005, 0.9), "10%", COMPARED, "By how much TPS may fall, or p99 rise.", metavar="SHARE"
    )
    max_pairs: int = option(
        whole(gate.FEWEST, gate.MOST), "200", COMPARED, "Pairs after which it ends, decided or not."
    )
    max_time: float = option(
        duration(1.0),
        "20m",
        COMPARED,
        "No other pair is begun where it would end later.",
        metavar="DURATION",
    )
    strict: bool = option(switch, None, COMPARED, "Exit 3 when it stays inconclusive.", flag=True)


GATE = chosen(options_of(Gate))
"""What is compared."""


def ab_options() -> tuple[Option, ...]:
    """Return all options of the command."""
    return (*GATE, *(_own(one) for one in face(DEFAULT).options if one.name not in _NOT_HERE))


def _own(one: Option) -> Option:
    if one.name != "concurrency":
        return one
    return replace(one, default=CONCURRENCY, help="Processes; of a list the geometric mean is judged.")
