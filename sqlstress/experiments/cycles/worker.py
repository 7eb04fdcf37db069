"""A worker's half of the experiment with cycles: every statement is a step, timed apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.engine.protocols import TIMEOUT, Chunk, Findings, Stamps
from sqlstress.experiments.cycles.looks import Asking, is_watched
from sqlstress.experiments.cycles.moves import KINDS
from sqlstress.experiments.cycles.steps import Steps
from sqlstress.experiments.cycles.times import CycleTimes
from sqlstress.statistics.units import NS_PER_S

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.dry.place import DryPlace
    from sqlstress.targets.sqlite.place import SqlitePlace


class CyclesSource(OrderedSource):
    """Does its cycles, until its time is up. No chunk reaches beyond the end of a cycle."""

    kinds = KINDS

    def __init__(
        self,
        case: Case,
        place: SqlitePlace | DryPlace,
        worker: int,
        salt: int,
        shared: tuple[Any, ...],
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        words, looks = shared
        self._client = place.client(worker) if place.stores else None
        super().__init__(words, worker, self._client, iter(()))
        self._clock = clock
        assert case.spec
        self._cycling = case.spec
        self._made = Steps(case, worker, salt, self._client)
        self._asking = Asking(looks, worker) if is_watched(place) else None
        self._times = CycleTimes()
        self._stretches = self._stretch_by_stretch()
        self._until_ns: float | None = None

    def _stretch_by_stretch(self) -> Iterator[Iterator[Step]]:
        """Yield the steps of each cycle, then the closing one; the next is asked for when those were done."""
        for cycle in range(1, self._cycling.cycles + 1):
            yield self._made.of_cycle(cycle)
            self._times.end_cycle()
            if self._asking:
                self._asking.wait(cycle)
        if self._asking and self._asking.is_last():
            yield self._made.closing()

    def next_chunk(self, size: int) -> Chunk | None:
        if self._is_late():
            self.seen.outcome = TIMEOUT
            self.seen.note = f"{self._times.cycles} of {self._cycling.cycles} cycles were done"
            return None
        chunk = super().next_chunk(size)
        while chunk is None and (stretch := next(self._stretches, None)):
            self._steps = stretch
            chunk = super().next_chunk(size)
        return chunk

    def _is_late(self) -> bool:
        """Return whether the time is up, which begins when this is first asked."""
        if self._cycling.timeout_s is None:
            return False
        now = self._clock()
        self._until_ns = self._until_ns or now + self._cycling.timeout_s * NS_PER_S
        return now >= self._until_ns

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        super().settle(chunk, done, results, stamps)
        self._times.add(chunk.kinds[:done], stamps)

    def findings(self) -> Findings:
        self.seen.effective = self._client.effective() if self._client else {}
        self.seen.series = self._times.series()
        return self.seen

    def close(self) -> None:
        if self._client:
            self._client.close()
