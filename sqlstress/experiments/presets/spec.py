"""What is asked for where published settings are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlstress.options.option import REST, option
from sqlstress.options.parsing import duration, shown, switch, whole

COMPARED = "What is compared"
MOST_ROUNDS = 500


def name(value: Any) -> str:
    """Read the name of a preset."""
    if isinstance(value, str) and value.strip():
        return value.strip().lower()
    raise ValueError(f"{shown(value)} is no name of a preset")


def names(value: Any) -> tuple[str, ...]:
    """Read names of presets: "rails,django"."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    if not parts:
        raise ValueError(f"{shown(value)} names no preset: write rails,django")
    return tuple(dict.fromkeys(map(name, parts)))


def words(value: Any) -> tuple[str, ...]:
    """Read the words behind --."""
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ValueError(f"{shown(value)} is no list of words")


@dataclass(frozen=True, slots=True)
class Nothing:
    """A comparison says nothing in a case: those that it measures are of the load."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Which presets are measured, and how often."""

    compare: tuple[str, ...] | None = option(
        names, None, COMPARED, "Presets to measure: rails,django; all for every one.", metavar="LIST"
    )
    against: str = option(
        name,
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
        words,
        (),
        COMPARED,
        "Your load, behind --: options of kv, or another command and its options.",
        metavar="[-- OPTIONS OF THE LOAD]",
        argument=REST,
    )
