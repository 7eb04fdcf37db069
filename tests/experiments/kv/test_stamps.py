"""When writes began and ended, from the loop to the proof; also where workers are idle between them,
as they are at a rate.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from sqlstress.engine.loop import FOREVER_NS, Totals, Window, closed_loop, timed_loop
from sqlstress.engine.values import Stamp
from sqlstress.experiments.kv.acks import Area, latest_begins
from sqlstress.experiments.kv.experiment import Load
from sqlstress.experiments.kv.work import History
from sqlstress.report.case import Arrivals, Case
from tests.engine.fakes import FakeClock, idling
from tests.experiments.kv.dry import NOWHERE, SALT
from tests.experiments.kv.mortal import Killed
from tests.halves import open_source, open_work
from tests.pulses import nothing

GAP_NS = 30
ONLY_KEY = 0


class Workers:
    """Two workers who replace the only key: `run` makes one do so, for so many nanoseconds each time."""

    def __init__(self, arrivals: Arrivals | None = None) -> None:
        spec = Load(read_ratio=0.0, key_space=1)
        self.case = Case(driver="dry", spec=spec, concurrency=2, arrivals=arrivals)
        work: Any = open_work(self.case, NOWHERE, SALT, {})
        work.prepare(nothing)
        self.shared = work.shared
        words = memoryview(self.shared[0]).cast("B").cast("q")
        self.areas = [Area(words, work.shape, worker) for worker in (1, 2)]

    def run(self, worker: int, start_ns: int, writes: list[int], dies: bool = False) -> Totals:
        """Let a worker do its writes, and perhaps die in the one after them.

        Where it may be idle it is so before each write, for GAP_NS.
        """
        clock, lengths = FakeClock(start_ns), iter(writes)

        def put(_params: object) -> None:
            length = next(lengths, None)
            if length is None:
                raise Killed
            clock.now += length

        source: Any = open_source(self.case, NOWHERE, worker, SALT, self.shared)
        source.store.puts = [put]
        window, limit = Window(0, 0, FOREVER_NS), None if dies else len(writes)
        loop = idling(clock, GAP_NS) if source.shape.idle else closed_loop(source)
        return timed_loop(source, window, limit, [0], [0], loop, clock)

    def objection(self, found: Stamp, unknown: dict[Stamp, int] | None = None) -> str | None:
        """Return what the proof says of a write that was found at the key."""
        history = History(
            [area.sequences for area in self.areas],
            [area.begins for area in self.areas],
            [area.ends for area in self.areas],
            latest_begins(self.areas, nothing),
            unknown or {},
        )
        return history.objection(ONLY_KEY, found)


@pytest.fixture
def idlers() -> Workers:
    return Workers(Arrivals(1000))


@pytest.mark.parametrize("writes", [1, 8, 9, 20])
def test_in_a_closed_loop_a_killed_worker_has_left_when_its_last_write_began(writes: int) -> None:
    workers = Workers()
    with pytest.raises(Killed):
        workers.run(2, 100, [10] * writes, dies=True)
    area = workers.areas[1]
    assert list(area.settle_after_death()) == [writes + 1]
    ended = 100 + 10 * writes
    assert (area.begins[ONLY_KEY], area.ends[ONLY_KEY]) == (ended - 10, ended)


STALE = "holds worker 1's write 1, but worker 2's write 2 began after that one completed"


@pytest.mark.parametrize("dies", [False, True], ids=["alive", "killed"])
@pytest.mark.parametrize(
    ("length", "objection"), [(19, STALE), (20, None), (25, None)], ids=["before", "at", "after"]
)
def test_a_write_began_at_its_own_begin_and_not_when_the_one_before_it_ended(
    idlers: Workers, dies: bool, length: int, objection: str | None
) -> None:
    idlers.run(1, 90, [length])  # from 120 on
    with suppress(Killed):
        idlers.run(2, 70, [10, 10], dies)  # 100 to 110, 140 to 150
    unknown = {Stamp(2, sequence): slot for sequence, slot in idlers.areas[1].settle_after_death().items()}
    assert list(unknown) == ([Stamp(2, 3)] if dies else [])
    assert [idlers.areas[1].begins[ONLY_KEY], idlers.areas[1].ends[ONLY_KEY]] == [140, 150]
    assert idlers.objection(Stamp(1, 1), unknown) == objection
    assert idlers.objection(Stamp(2, 2), unknown) is None


def test_a_write_under_way_when_its_worker_died_has_its_own_begin(idlers: Workers) -> None:
    with pytest.raises(Killed):
        idlers.run(2, 70, [10, 10], dies=True)
    begins, ends = idlers.areas[1].stamps
    assert [*zip(begins[:3], ends[:3], strict=True)] == [(100, 110), (140, 150), (180, 0)]


def test_idle_time_is_in_no_latency(idlers: Workers) -> None:
    totals = idlers.run(1, 1_000, [10] * 40)
    assert totals.operations == {"replace": 40}
    assert totals.largest_ns == {"replace": 10}
    assert (totals.longest_wait_ns, totals.harness_ns) == (10, 0)
    assert (totals.first_ns, totals.last_ns) == (1_000 + GAP_NS, 1_000 + 40 * (GAP_NS + 10))
