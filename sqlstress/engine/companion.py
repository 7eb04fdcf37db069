"""A process beside the workers: it is started and ended like one, and counts in no figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import Companion
from sqlstress.engine.worker import DISMISSED, STOP, await_window, failures_reported, wait_until
from sqlstress.statistics.series import Series
from sqlstress.system.child import Pipe, begin_child, send
from sqlstress.system.importing import named
from sqlstress.targets import open_place

if TYPE_CHECKING:
    from sqlstress.report.case import Case


@dataclass(frozen=True, slots=True)
class Errand:
    """What a companion is told when it is started."""

    name: str
    """What it is called."""
    target: str
    """Import string of what opens its half."""
    case: Case
    """As `plain.plain` makes it."""
    where: Path
    """Where the data lies: what the companion makes its place of."""
    counters: Any
    """Shared words, of which the parent's come first."""
    shared: tuple[Any, ...]
    """The workload's shared arrays."""
    trace: Any = None
    """What it tells in where its time goes; None: nobody asks."""
    process: int = 0
    """The number under which it does."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What a companion has seen."""

    series: list[Series]


def main(errand: Errand, pipe: Pipe) -> None:
    """Run a companion's process."""
    words = memoryview(errand.counters).cast("B").cast("q")
    with failures_reported(pipe, errand.case.driver):
        begin_child()
        place = open_place(errand.case, errand.where)
        watch = place.watch(errand.trace, errand.process) if errand.trace else None
        companion: Companion = named(errand.target)(errand.case, place, errand.shared)
        window = await_window(pipe)
        if watch:
            watch.window(window.opens_ns, window.closes_ns)
        wait_until(window.starts_ns)
        series = companion.run(window, lambda: bool(words[STOP] or words[DISMISSED]))
        if watch:
            watch.end()
        companion.close()
        send(pipe, Observed(series))
