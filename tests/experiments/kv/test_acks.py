"""Acknowledged writes stay in shared memory, whenever their worker dies; and so do the begin and end of
writes, from the loop to the proof, also where workers are idle between them, as they are at a rate.
"""

import itertools
from array import array
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.loop import FOREVER_NS, Totals, Window, closed_loop, timed_loop
from sqlstress.engine.protocols import Stamps
from sqlstress.engine.values import Stamp
from sqlstress.errors import Interrupted
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.acks import (
    COUNTERS,
    UNTRACKED,
    AckArea,
    Shape,
    Slots,
    area_of,
    latest_begins,
    tracking_flags,
)
from sqlstress.experiments.kv.spec import Load
from sqlstress.experiments.kv.work import ReadHistory
from sqlstress.report.case import Arrivals, Case
from tests.engine.fakes import FakeClock, idling
from tests.experiments.kv.dry import NOWHERE, SALT
from tests.experiments.kv.mortal import Killed, MortalWords, entered, shared_words
from tests.halves import open_source, open_work
from tests.pulses import Pulses, nothing

SLOTS = 6
LONGEST = 5
Chunks = list[list[list[int]]]
"""Chunks of operations; an operation is the slots of its rows, UNTRACKED for a row without a slot."""


@dataclass
class Model:
    """Acknowledged writes of a worker, kept where they can't be lost: the model of its area."""

    writes: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Slot → (sequence number, begin, end) of the last acknowledged write."""
    in_doubt: set[int] = field(default_factory=set)
    """Sequence numbers of the rows that were written and not acknowledged yet."""

    def acknowledge(self, rows: list[int], first: int, begin: int, end: int) -> None:
        self.in_doubt.clear()
        for sequence, slot in enumerate(rows, first):
            if slot >= 0:
                self.writes[slot] = (sequence, begin, end)


def announce(area: AckArea, rows: list[int], first: int, operations: int) -> None:
    area.announce(array("q", rows), tracking_flags(rows), first, operations)


def work(area: AckArea, chunks: Chunks, model: Model) -> None:
    """Do the work of a worker: announce a chunk, do and stamp its operations, fold, settle.

    A worker that may be idle is idle between any two operations.
    """
    ticks, first, width = itertools.count(100, 10), 1, area.shape.width
    for chunk in chunks:
        announce(area, [slot for rows in chunk for slot in rows], first, len(chunk))
        begins, ends, begin = [], [], next(ticks)
        for index, rows in enumerate(chunk):
            area.stamps.begins[index] = begin
            start, end = first + index * width, next(ticks)
            # From here on the operation is done, but not acknowledged.
            model.in_doubt = {start + place for place, slot in enumerate(rows) if slot != UNTRACKED}
            area.stamps.ends[index] = end
            model.acknowledge(rows, start, begin, end)
            begins.append(begin)
            ends.append(end)
            begin = next(ticks) if area.shape.idle else end
        area.fold(area.rows[: len(chunk) * width].tolist(), Stamps(begins, ends))
        area.mark_settled()
        first += len(chunk) * width


def chunks_of(width: int) -> st.SearchStrategy[Chunks]:
    slots = st.lists(st.integers(0, SLOTS - 1), min_size=width, max_size=width, unique=True)
    with_marks = st.lists(st.sampled_from([UNTRACKED, *range(SLOTS)]), min_size=width, max_size=width)
    operations = st.one_of(slots, with_marks, st.just([UNTRACKED] * width))
    return st.lists(st.lists(operations, min_size=1, max_size=LONGEST), min_size=1, max_size=3)


def shape_for(width: int, idle: bool = False) -> Shape:
    return Shape(width, LONGEST, SLOTS, 0, idle)


def area_for(width: int = 1) -> AckArea:
    return AckArea(shared_words(shape_for(width).words), shape_for(width), worker=1)


def stamp(area: AckArea, begins: list[int], ends: list[int]) -> None:
    """Stamp the first operations of a chunk; an operation under way has a begin and no end."""
    for row, moments in zip(area.stamps, (begins, ends), strict=True):
        for place, moment in enumerate(moments):
            row[place] = moment


def lived(shape: Shape, chunks: Chunks, stores: int) -> tuple[AckArea, Model, bool]:
    """Let a worker live for `stores` stores: return its area, the model, and whether it lived to the end."""
    words, model = shared_words(2 * shape.words), Model()
    try:
        work(AckArea(MortalWords(words, [stores]), shape, worker=2), chunks, model)
    except Killed:
        return AckArea(words, shape, worker=2), model, False
    return AckArea(words, shape, worker=2), model, True


@pytest.mark.parametrize("idle", [False, True], ids=["closed", "idle"])
@pytest.mark.parametrize("width", [1, 2])
@given(data=st.data())
def test_area_of_a_dead_worker_equals_the_model_after_any_store(
    width: int, idle: bool, data: st.DataObject
) -> None:
    shape, chunks = shape_for(width, idle), data.draw(chunks_of(width))
    survived, stores = False, 0
    while not survived:
        area, model, survived = lived(shape, chunks, stores)
        if survived:
            assert entered(area) == model.writes
        unknown = set(area.settle_after_death())
        assert entered(area) == model.writes
        assert unknown >= model.in_doubt
        assert len(unknown) <= (0 if survived else width)
        assert unknown.isdisjoint(sequence for sequence, _, _ in model.writes.values())
        again = set(area.settle_after_death())
        assert (entered(area), again) == (model.writes, unknown)
        stores += 1


def test_worker_writes_only_its_own_words() -> None:
    shape = shape_for(1)
    words = shared_words(3 * shape.words)
    work(AckArea(words, shape, worker=2), [[[0], [5], [UNTRACKED]]], Model())
    assert not any(words[: shape.words])
    assert not any(words[2 * shape.words :])


def test_write_given_up_leaves_the_earlier_write_in_force() -> None:
    area = area_for()
    work(area, [[[4]]], Model())
    announce(area, [4, 4], 2, 2)
    stamp(area, [200], [210])
    area.give_up(0)
    area.give_up(1)
    assert area.settle_after_death() == {}
    assert entered(area) == {4: (1, 100, 110)}


def test_death_before_the_stamp_leaves_a_write_in_doubt_but_no_read() -> None:
    for done, in_doubt in ([60, 70], [9]), ([60], []):
        area = area_for()
        announce(area, [3, UNTRACKED, 3], 7, 3)
        stamp(area, [50], done)
        assert list(area.settle_after_death()) == in_doubt
        assert entered(area) == {3: (7, 50, 60)}


def shape_of(keys: int, batch: int = 1, update_ratio: float = 0.0, **more: Any) -> Shape:
    return acks.shape_of(Case(spec=Load(key_space=keys, batch=batch, update_ratio=update_ratio), **more))


def test_first_operation_of_an_undone_chunk_is_in_doubt() -> None:
    shape = shape_of(2000)
    area = AckArea(shared_words(shape.words), shape, worker=1)
    announce(area, list(range(shape.operations)), 1, shape.operations)
    assert area.settle_after_death() == {1: 0}


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_slots_are_places_of_a_permutation_of_the_keys(keys: int, slots: int) -> None:
    slots = min(keys, slots)
    mapping = Slots(keys, slots)
    found = [mapping.slot(number) for number in range(keys)]
    assert sorted(slot for slot in found if slot != UNTRACKED) == list(range(slots))
    assert mapping.all_tracked is (slots == keys)


@pytest.mark.parametrize("keys", [1000, 999, 1024, 4096, 99_991])
def test_tracked_keys_are_not_neighbours(keys: int) -> None:
    tenth = Slots(keys, keys // 10)
    tracked = [number for number in range(keys) if tenth.slot(number) != UNTRACKED]
    gaps = [after - before for before, after in itertools.pairwise([0, *tracked, keys])]
    assert max(gaps) < 40


@pytest.mark.parametrize("concurrency", [1, 8, 256, 1024])
@pytest.mark.parametrize("keys", [10**5, 10**7, 10**8])
def test_memory_of_all_workers_stays_within_the_budget(concurrency: int, keys: int) -> None:
    shape = shape_of(keys, concurrency=concurrency)
    assert isinstance(shape.slots, int)
    assert 0 < shape.slots <= keys
    assert concurrency * 24 * shape.slots <= acks.MEMORY_BUDGET
    assert concurrency * 8 * shape.words < 1.1 * acks.MEMORY_BUDGET
    used = concurrency * 24 * shape.slots / acks.MEMORY_BUDGET
    assert shape.slots == keys or used > 0.99


@pytest.mark.parametrize(("batch", "operations"), [(1, 1024), (3, 341), (100, 10), (10_000, 8)])
def test_chunk_has_as_many_rows_with_batches_as_without(batch: int, operations: int) -> None:
    shape = shape_of(100_000, batch)
    assert (shape.width, shape.operations) == (batch, operations)


@pytest.mark.parametrize(("update_ratio", "counters"), [(0.0, 0), (0.5, 5 * COUNTERS)])
def test_counters_have_words_only_where_there_are_updates(update_ratio: float, counters: int) -> None:
    shape = shape_of(10, update_ratio=update_ratio, buckets=5)
    assert shape.counters == counters
    assert len(AckArea(shared_words(shape.words), shape, 1).counts) == counters


def test_sets_of_the_published_script_have_slots_and_no_idle_time() -> None:
    assert acks.shape_of(Case(workload="classic", ops=60, concurrency=3)) == Shape(
        1, acks.MAX_CHUNK_ROWS, 60, 0
    )
    assert acks.shape_of(Case(workload="classic")).slots == 0


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("slots", [1, 511, 512, 513, 2000])
def test_latest_begin_of_a_slot_is_over_all_workers(workers: int, slots: int) -> None:
    random = Random(f"{workers} {slots}")
    begins = [[random.choice((0, random.getrandbits(62))) for _ in range(slots)] for _ in range(workers)]
    shape = Shape(1, 8, slots, 0)
    words = shared_words(len(begins) * shape.words)
    areas = [AckArea(words, shape, worker) for worker in range(1, len(begins) + 1)]
    for area, column in zip(areas, begins, strict=True):
        area.begins[:] = array("q", column)
    assert list(latest_begins(areas, nothing)) == [max(each) for each in zip(*begins, strict=True)]


def test_comparison_of_slots_can_be_interrupted() -> None:
    shape, whole = Shape(1, 8, 5000, 0), Pulses()
    words = shared_words(2 * shape.words)
    areas = [AckArea(words, shape, worker) for worker in (1, 2)]
    latest_begins(areas, whole)
    assert whole.count >= 5
    with pytest.raises(Interrupted):
        latest_begins(areas, Pulses(stop_at=whole.count))


# When writes began and ended.


GAP_NS = 30
ONLY_KEY = 0


class Workers:
    """Two workers that replace the only key: `run` makes one of them write, with given durations."""

    def __init__(self, arrivals: Arrivals | None = None) -> None:
        spec = Load(read_ratio=0.0, key_space=1)
        self.case = Case(driver="dry", spec=spec, concurrency=2, arrivals=arrivals)
        work: Any = open_work(self.case, NOWHERE, SALT, {})
        work.prepare(nothing)
        self.shared = work.shared
        self.areas = [area_of(self.case, self.shared[0], worker) for worker in (1, 2)]

    def run(self, worker: int, start_ns: int, writes: list[int], dies: bool = False) -> Totals:
        """Let a worker do its writes, and perhaps die in the write after them.

        A worker that may be idle is idle before each write, for GAP_NS.
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
        """Return the proof's objection to a write that was read at the key, or None."""
        history = ReadHistory(
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
def test_killed_worker_of_a_closed_loop_leaves_the_begin_of_its_last_write(writes: int) -> None:
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
def test_write_begins_at_its_own_begin_not_at_the_end_of_the_previous_one(
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


def test_unfinished_write_of_a_dead_worker_has_its_own_begin(idlers: Workers) -> None:
    with pytest.raises(Killed):
        idlers.run(2, 70, [10, 10], dies=True)
    begins, ends = idlers.areas[1].stamps
    assert [*zip(begins[:3], ends[:3], strict=True)] == [(100, 110), (140, 150), (180, 0)]
