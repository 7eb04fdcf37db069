"""The options of A/B tests: what is compared, and those of the experiment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.experiment import DEFAULT, face
from sqlstress.options.option import REST, Option, chosen, option, options_of
from sqlstress.options.parsing import choice, duration, percentage, switch, whole
from sqlstress.plan.rate import AT_A_RATE
from sqlstress.statistics import gate

COMPARED = "What is compared"
_OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {"default": "2", "help": "Processes; of a list the geometric mean is judged."},
    "duration": {"default": "2s", "help": "Length of the measured window of a slice."},
    "warmup": {"default": "500ms"},
}
"""What options of the experiment mean here, where there is a single trial to a slice."""
_NOT_HERE = ("repeat", "max-failed", *AT_A_RATE)
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
        percentage(0.005, 0.9),
        "10%",
        COMPARED,
        "By how much TPS may fall, or p99 rise: 10% or 0.1.",
        metavar="SHARE",
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
_GATE_NAMES = frozenset(option.name for option in GATE)

Given = dict[str, Any]
"""Unparsed values by option name."""


def ab_options(command: str = DEFAULT) -> tuple[Option, ...]:
    """Return all options of the command for an experiment."""
    return (*GATE, *load_options(command))


def load_options(command: str) -> tuple[Option, ...]:
    """Return those of the experiment, which each arm may have for itself."""
    return tuple(_own(one) for one in face(command).options if one.name not in left_out(command))


def left_out(command: str) -> frozenset[str]:
    """Return the options of an experiment that mean nothing in a test."""
    return frozenset((*_NOT_HERE, *face(command).by_itself))


def defaults(given: Collection[str], command: str = DEFAULT) -> dict[str, Any]:
    """Return what stands for options that an arm was not given: other Pythons may have other defaults."""
    counted = ("duration", "warmup") if "ops" in given else ()
    usual = {name: said["default"] for name, said in _OTHERWISE.items() if name not in counted}
    return {**usual, **{name: value for name, value in face(command).by_itself.items() if value is not None}}


def _own(one: Option) -> Option:
    return replace(one, **_OTHERWISE.get(one.name, {}))


def of_gate_and_load(given: Given) -> tuple[Given, Given]:
    """Return the options that say what is compared, and those of the load."""
    gate = {name: value for name, value in given.items() if name in _GATE_NAMES}
    return gate, {name: value for name, value in given.items() if name not in gate}


def merged(command: str, common: Given, own: Given) -> Given:
    """Return the options of an arm: its own take the place of common ones, those of a list come beside them.

    But a command is one, whatever its words are.
    """
    wholes = {one.name for one in load_options(command) if one.argument == REST}
    lists = {
        name: (*common.get(name, ()), *value)
        for name, value in own.items()
        if isinstance(value, tuple) and name not in wholes
    }
    given = {**common, **own, **lists}
    return {**defaults(given, command), **given}
