"""The options of the search for the highest rate: what is promised, and those of the main experiment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlstress.experiment import DEFAULT, face
from sqlstress.options.option import Option, chosen, option, options_of
from sqlstress.options.parsing import duration, switch
from sqlstress.report.limit import PROMISE, Promise

_OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {
        "default": "4",
        "help": "Processes, a number: each is a connection that takes what is due.",
    },
    "buckets": {"help": "Files: 1 is one database, n is n hash-partitioned ones."},
    "duration": {
        "default": None,
        "help": "Length of a window; if it is not given, as long as 3 checkpoints take, 4s to 10s.",
    },
    "warmup": {"default": "500ms"},
}
"""What options of the experiment mean here."""
_NOT_HERE = ("repeat", "max-failed", "preset", "target", "ops", "rate", "latency-limit")
"""Options of the experiment that the search decides itself, or that make the answer another one."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is searched."""

    max_time: float = option(
        duration(1.0), "5m", PROMISE, "No other window is begun after so long.", metavar="DURATION"
    )
    strict: bool = option(switch, None, PROMISE, "Exit 3 when the answer is not whole.", flag=True)


PROMISED = (*chosen(options_of(Promise)), *chosen(options_of(Patience)))


def limit_options() -> tuple[Option, ...]:
    """Return all options of the command."""
    own = tuple(replace(one, **_OTHERWISE.get(one.name, {})) for one in face(DEFAULT).options)
    return (*PROMISED, *(one for one in own if one.name not in _NOT_HERE))
