"""The parent's look at the checks, before the load and after it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.own.checking import Broken, Checks, Unchecked
from sqlstress.own.loading import prepare_process
from sqlstress.system.plain import plain
from sqlstress.system.processes import call_apart
from sqlstress.targets import open_place
from sqlstress.targets.watched import run_watched

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.system.pulse import Pulse
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.sql import Reader

STARTING_S = 30.0
"""How long a process may take until it runs the first check."""


def broken(place: SqlPlace, pulse: Pulse) -> list[Broken]:
    """Return the checks that fail now. Raises Unchecked for one that can't be run, or takes too long."""
    data = place.case.spec.data
    if all(one.sql for one in data.checks):
        with place.reading(pulse) as reader:
            return run_watched(reader, lambda: _broken(place.case, reader), pulse)
    # A function of the user's may do anything: it gets a process that can be ended.
    limit_s = STARTING_S + data.check_timeout_s * len(data.checks)
    until = time.monotonic() + limit_s

    def hurried() -> None:
        pulse()
        if time.monotonic() > until:
            raise Unchecked(f"the checks took longer than {limit_s:g} s: make them cheaper.")

    return call_apart(hurried, broken_apart, plain(place.case), place.where)


def broken_apart(case: Case, where: Path) -> list[Broken]:
    """Do the same in a process of its own."""
    place: SqlPlace = open_place(case, where)  # type: ignore[assignment]
    prepare_process(place.directions(), str(case.seed))
    with place.reading(_nobody_stops) as reader:
        return _broken(case, reader)


def _nobody_stops() -> None:
    """Go on: whoever waits ends the process."""


def _broken(case: Case, reader: Reader) -> list[Broken]:
    data = case.spec.data
    return list(Checks(data.checks, data.check_timeout_s, reader).broken())


def told(found: Sequence[Broken]) -> list[str]:
    """Return what each of them says, a line each."""
    return [f"{one.name}: {', '.join(one.examples)}" for one in found]
