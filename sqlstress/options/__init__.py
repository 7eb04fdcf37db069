"""The options of each experiment: flags and TOML plans share them.

Every `parse` takes what the command line (a string) or TOML (a string, number, boolean or list)
gives, and raises ValueError with a sentence that says what would be right.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sqlstress.experiments.crash.options import CRASH
from sqlstress.experiments.cycles.options import CYCLES
from sqlstress.experiments.keys.options import KEYS
from sqlstress.experiments.kv.options import KV
from sqlstress.experiments.methods.options import METHODS
from sqlstress.options.ab import AB
from sqlstress.options.option import Option

OPTIONS: dict[str, tuple[Option, ...]] = {"kv": KV, "methods": METHODS, "keys": KEYS, "cycles": CYCLES}
"""The options of each workload that a plan or a command can name, in the order of `--help`."""

STUDIES: dict[str, tuple[Option, ...]] = {"ab": AB, "crash": CRASH}
"""The options of each command that decides itself how often it measures: no plan can name it."""


@cache
def by_name(name: str) -> Mapping[str, Option]:
    """Return the options of a workload or a study by their long names."""
    return {option.name: option for option in {**OPTIONS, **STUDIES}[name]}


__all__ = ["OPTIONS", "STUDIES", "Option", "by_name"]
