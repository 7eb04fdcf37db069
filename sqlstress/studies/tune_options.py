"""The options of a search for better settings: how long, and those of the main experiment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sqlstress.experiment import DEFAULT, face
from sqlstress.experiments.tune.spec import PATIENCE
from sqlstress.options.option import Option
from sqlstress.plan.rate import AT_A_RATE

_OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {"default": "4", "help": "Processes, a number."},
    "buckets": {"help": "Files: n is n hash-partitioned ones; of a list the best number is searched too."},
    "duration": {"default": "500ms", "help": "Length of the measured window of a slice."},
    "warmup": {"default": "200ms"},
}
"""What options of the experiment mean here, where there is a single trial to a slice."""
_NOT_HERE = ("repeat", "max-failed", "preset", "ops", *AT_A_RATE)
"""Options of the experiment that mean nothing where slices are measured in turns."""


def tune_options() -> tuple[Option, ...]:
    """Return all options of the command."""
    own = tuple(replace(one, **_OTHERWISE.get(one.name, {})) for one in face(DEFAULT).options)
    return (*PATIENCE, *(one for one in own if one.name not in _NOT_HERE))


def defaults(given: Collection[str]) -> dict[str, str]:
    """Return what stands for options that were not given."""
    return {
        name: said["default"] for name, said in _OTHERWISE.items() if "default" in said and name not in given
    }
