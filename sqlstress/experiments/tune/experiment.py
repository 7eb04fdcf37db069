"""The face of a search for better settings: the cases are those of its load, the verdict its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.experiment import DEFAULT, CommandLine, Experiment, StudyOf, face
from sqlstress.options.option import Option, chosen, option, options_of
from sqlstress.options.parsing import duration, switch
from sqlstress.plan import AT_A_RATE

# What is asked for where settings are searched.


SEARCH = "The search"


@dataclass(frozen=True, slots=True)
class Nothing:
    """A search says nothing in a case: those that it measures are of the load."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is searched."""

    max_time: float = option(
        duration(5.0), "3m", SEARCH, "How long is searched, the fresh pairs included.", metavar="DURATION"
    )
    strict: bool = option(switch, None, SEARCH, "Exit 3 when it can't be told what is better.", flag=True)


OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {"default": "4", "help": "Processes, a number."},
    "buckets": {"help": "Files: n is n hash-partitioned ones; of a list the best number is searched too."},
    "duration": {"default": "500ms", "help": "Length of the measured window of a slice."},
    "warmup": {"default": "200ms"},
}
"""What options of the load mean here, where there is a single trial to a slice."""
_NOT_HERE = ("repeat", "max-failed", "preset", "ops", *AT_A_RATE)
"""Options of the load that mean nothing where slices are measured in turns."""


def _of_load() -> Iterator[Option]:
    for one in face(DEFAULT).options:
        if one.name not in _NOT_HERE:
            yield replace(one, **OTHERWISE.get(one.name, {}))


TUNE = Experiment(
    name="tune",
    spec=Nothing,
    command=CommandLine(
        name="tune",
        summary="Settings that do more here, and promise the same.",
        help=(
            'Search settings that do more on this machine; it ends with a line to paste, or with "as '
            'good".\n\n'
            "Searched are checkpoints, page size, cache, mmap, how a lock is waited for, and with "
            "--buckets 1,4 the number of files; never journal mode, synchronous or batch. What is given "
            "stays."
        ),
        example="sqlstress tune --concurrency 4 --synchronous normal",
    ),
    options=(*chosen(options_of(Patience)), *_of_load()),
    extra=Patience,
    study=StudyOf(
        asks="sqlstress.experiments.tune.study:study_of",
        result="sqlstress.experiments.tune.results:Tuning",
        result_key=("choice", "tune"),
        called="a search for better settings",
    ),
    shown="sqlstress.experiments.tune.show:TuningShown",
)
