"""The options of A/B tests: what is compared, and those of the key-value experiment."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.kv.options import KV
from sqlstress.options.option import COMPARED, Option
from sqlstress.options.parsing import choice, percentage, switch
from sqlstress.statistics import gate

CONCURRENCY = "2"


def _own(option: Option) -> Option:
    if option.name != "concurrency":
        return option
    return replace(
        option,
        default=CONCURRENCY,
        help="Processes; of a list the geometric mean is judged.",
    )


GATE = (
    Option("a", str, "", COMPARED, 'Options of A, the baseline: "--synchronous full".', metavar="OPTIONS"),
    Option("b", str, "", COMPARED, "Options of B, which is compared with A.", metavar="OPTIONS"),
    Option("python-a", str, None, COMPARED, "Interpreter that measures A.", metavar="PYTHON"),
    Option("python-b", str, None, COMPARED, "Interpreter that measures B.", metavar="PYTHON"),
    Option(
        "metric", choice(*gate.METRICS), "tps", COMPARED, "tps, or p99 of all operations.", metavar="NAME"
    ),
    Option(
        "max-drop",
        percentage(0.005, 0.9),
        "10%",
        COMPARED,
        "By how much TPS may fall, or p99 rise.",
        metavar="SHARE",
    ),
    Option("strict", switch, None, COMPARED, "Exit 3 when it stays inconclusive.", flag=True),
)
"""What is compared."""

AB = (*GATE, *(_own(option) for option in KV if option.name not in ("repeat", "preset")))
