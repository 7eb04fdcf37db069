"""The options of the search for the highest rate: what is promised, and those of the experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT, face
from sqlstress.options.option import Option, chosen, option, options_of
from sqlstress.options.parsing import duration, switch
from sqlstress.plan import cases_of, parsed
from sqlstress.report.limit import PROMISE, LimitSearch, Promise

if TYPE_CHECKING:
    from sqlstress.studies.limit import LimitStudy

_OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {
        "default": "4",
        "help": "Processes, a number: each is a connection that takes what is due.",
    },
    "target": {"metavar": "NAME", "help": "Where it is measured: sqlite or postgres."},
    "buckets": {"help": "Files: 1 is one database, n is n hash-partitioned ones."},
    "duration": {
        "default": None,
        "help": "Length of a window; if it is not given, as long as 3 checkpoints take, 4s to 10s.",
    },
    "warmup": {"default": "500ms"},
}
"""What options of the experiment mean here."""
_NOT_HERE = ("repeat", "max-failed", "ops", "rate", "latency-limit")
"""Options of the experiment that the search decides itself, or that make the answer another one."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is searched."""

    max_time: float = option(
        duration(1.0), "5m", PROMISE, "No other window is begun after so long.", metavar="DURATION"
    )
    strict: bool = option(switch, None, PROMISE, "Exit 3 when the answer is not whole.", flag=True)


PROMISED = (*chosen(options_of(Promise)), *chosen(options_of(Patience)))


def limit_options(command: str = DEFAULT) -> tuple[Option, ...]:
    """Return all options of the command for an experiment."""
    experiment = face(command)
    own = tuple(replace(one, **_OTHERWISE.get(one.name, {})) for one in experiment.options)
    return (*PROMISED, *(one for one in own if one.name not in (*_NOT_HERE, *experiment.by_itself)))


def search_for(given: Mapping[str, Any], command: str = DEFAULT) -> LimitStudy:
    """Return the search that options ask for: unparsed values by name. Raises UsageError."""
    # Here, since help needs no engine.
    from sqlstress.studies.limit import LimitStudy

    known = {one.name: one for one in PROMISED}
    own = {name: parsed(option, given.get(name, option.default)) for name, option in known.items()}
    promise = Promise(own["p50"], own["p99"], own["p999"], own["max"])
    if not promise.bounds:
        raise UsageError("nothing is promised: give --p99 10ms, or --p50, --p999 or --max.")
    asked = {name: value for name, value in given.items() if name not in known}
    for name in asked.keys() & {*_NOT_HERE, *face(command).by_itself}:
        raise UsageError(f"--{name} is no option of a search: leave it out.")
    fixed = {name: value for name, value in face(command).by_itself.items() if value is not None}
    usual = {"concurrency": "4", "warmup": "500ms", "arrival": "poisson", "rate": "1"}
    cases = cases_of({**usual, **fixed, **asked}, command)
    if len(cases) > 1:
        raise UsageError(
            "one number of processes, one of files and one target at a time: the answer is a single one."
        )
    (case,) = cases
    assert case.arrivals
    return LimitStudy(
        # It looks for where operations begin to fail: that is no failure.
        replace(case, arrivals=None, repeat=1, max_failed=1.0),
        LimitSearch(promise, own["max-time"]),
        case.arrivals.spacing,
        case.duration_s if asked.get("duration") else None,
    )
