"""The parent's half of the key-value workload, and of the published script: preload, verification."""

from __future__ import annotations

import ctypes
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqlstress.engine.harness_cost import bare_call_ns
from sqlstress.engine.proofs import ProvenWork, examined, reading_checks
from sqlstress.engine.protocols import Outcome
from sqlstress.engine.values import HEADER, Stamp, Values
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.keys import Placement, buckets_of, encoder, number_of
from sqlstress.experiments.kv.spec import companions_of
from sqlstress.experiments.kv.worker import drawn_keys
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import EXAMPLES, Tally
from sqlstress.system.interrupt import Pulse, paced
from sqlstress.system.sharing import shared_array
from sqlstress.target import serves
from sqlstress.targets.place import Place

Row = tuple[str, int | None, Stamp | None]
"""What was found: a key in words, its slot or None if it is not tracked, its write or None if nobody's."""

MOST_KEPT = 1_000_000
"""Keys whose partition is kept for the next trial: 6 MB a layout."""
_BLOCK = 1 << 14
_WORDS = "acknowledgements"


def shared_arrays(case: Case, carry: dict[Any, Any], pulse: Pulse) -> tuple[Any, Any]:
    """Return (bucket of each key, keys ordered by bucket) as shared arrays.

    With one bucket, and for the published script, whose buckets are remainders, there are none: (None, None).

    Millions of keys take seconds: `pulse` is called often, and may raise. What the trial before had of the
    same keys is taken from `carry`; of very many keys nothing is kept.
    """
    load = case.spec
    if case.buckets == 1 or case.workload == "classic":
        return None, None
    kind = ("partition", case.buckets, load.key_space, load.key_type)
    if kind in carry:
        kept: tuple[Any, Any] = carry[kind]
        return kept
    encode, bucket_table = encoder(load.key_type), shared_array("H", load.key_space)
    words = memoryview(bucket_table).cast("B").cast("H")
    groups = [array("I") for _ in range(case.buckets)]
    for start in range(0, load.key_space, _BLOCK):
        pulse()
        block = range(start, min(start + _BLOCK, load.key_space))
        buckets = buckets_of(map(encode, block), case.buckets)
        words[start : block.stop] = buckets
        for number, bucket in zip(block, buckets, strict=True):
            groups[bucket].append(number)
    order, place = shared_array("I", load.key_space), 0
    ordered = memoryview(order).cast("B").cast("I")
    for group in groups:
        ordered[place : place + len(group)] = group
        place += len(group)
    if load.key_space <= MOST_KEPT:
        carry[kind] = bucket_table, order
    return bucket_table, order


class KeyValueWork(ProvenWork):
    """One trial's data, shared memory and verdict."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        load = case.spec
        self.table = place.table(load.key_type, load.value_size, acks.COUNTERS if load.update_ratio else 0)
        self.values = Values(salt, load.value_size)
        self.shared: tuple[Any, ...] = ()
        self.companions = companions_of(case)
        self.carry, self._bare_call = carry, ("bare call", case.driver)

    def share(self, pulse: Pulse) -> None:
        if self.shared:
            return
        bucket_table, order = shared_arrays(self.case, self.carry, pulse)
        self.placement = Placement(self.case, bucket_table, order)
        self.placement.check_room()
        self.words = self._zeros(acks.shape_of(self.case).words * self.case.concurrency)
        self.shared = (self.words, bucket_table, order)
        if self.case.spec.where:
            self.trace = self.place.trace(self.case.concurrency + len(self.companions))

    def _zeros(self, length: int) -> Any:
        """Return at least so many shared words of 0: those of an earlier trial, if they are enough."""
        words = self.carry.pop(_WORDS, None)
        if words is None or len(words) < length:
            return shared_array("q", length)
        ctypes.memset(words, 0, 8 * length)
        return words

    def prepare(self, pulse: Pulse) -> None:
        """Create and preload every bucket; see that settings were taken."""
        self.share(pulse)
        super().prepare(pulse)
        # What the binding costs that the loop calls is learnt once; the one in C calls none.
        if self.place.stores and self.case.spec.loop == "python" and self._bare_call not in self.carry:
            self.carry[self._bare_call] = bare_call_ns(self.place, pulse)

    def create(self, pulse: Pulse) -> None:
        assert self.table
        buckets = map(self.placement.members, range(self.case.buckets))
        self.table.fill((self._preload(numbers, pulse) for numbers in buckets), pulse)

    def _preload(self, numbers: Sequence[int], pulse: Pulse) -> Iterator[tuple[Any, Any]]:
        keys = map(encoder(self.case.spec.key_type), paced(numbers, pulse))
        return zip(keys, map(self.values.maker(0), numbers), strict=True)

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Add what the binding costs, and where the time went, if that was asked for."""
        if not any(worker.error for worker in trial.workers):  # one that is not known to have ended may write
            self.carry[_WORDS] = self.words
        trial = replace(trial, bare_call_ns=self.carry.get(self._bare_call))
        if self.trace is None:
            return trial
        return replace(trial, where=self.place.account(self.trace, trial.workers))

    def ended(self, pulse: Pulse) -> None:
        if self.table:
            self.table.settle()

    def release(self) -> None:
        if self.table:
            self.table.release()

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        areas = [acks.area_of(self.case, self.words, outcome.worker) for outcome in outcomes]
        deaths = sum(outcome.died for outcome in outcomes)
        yield from reading_checks(outcomes)
        with self._proving(areas, deaths, pulse) as all_right:
            yield from self.sound(pulse)
            right = all_right()
        if right:
            yield right
        else:
            history = self.history(outcomes, areas, pulse)
            yield examined("last write", lambda: self.check_keys(history, pulse))
        if self.case.spec.update_ratio:
            yield examined("lost updates", lambda: self._check_counters(areas, deaths))

    @contextmanager
    def _proving(
        self, areas: Sequence[acks.Area], deaths: int, pulse: Pulse
    ) -> Iterator[Callable[[], Check | None]]:
        """Let C look at all rows meanwhile. Yield what returns that they are right, if C finds so.

        Else `check_keys` says what is wrong, and where somebody has died, which Python enters first.
        """
        load = self.case.spec
        if deaths or load.loop != "native":
            yield lambda: None
            return
        paddings = [self.values.padding(worker) for worker in range(self.case.concurrency + 1)]
        plan = {
            **acks.plan_of(self.case, self.placement, self.values, areas[0]),
            "paddings": None if load.value_size == HEADER else b"".join(paddings),
            "seen": bytearray(load.key_space),
        }
        right = Check("last write", "ok", load.key_space, note=self._tracked())
        with self.place.proving(plan, pulse) as rows:
            # No key was found twice: as many as there are, are all.
            yield lambda: right if rows() == load.key_space else None

    def _tracked(self) -> str:
        """Return of which keys the last write is known, where it is not known of all."""
        keys, slots = self.case.spec.key_space, acks.shape_of(self.case).slots
        return "" if slots == keys else f"last writes tracked for {slots / keys:.0%} of the keys"

    def history(self, outcomes: Sequence[Outcome], areas: Sequence[acks.Area], pulse: Pulse) -> History:
        """Return what the workers were told, once what the dead ones had been told is entered."""
        unknown = {
            Stamp(outcome.worker, sequence): slot
            for outcome, area in zip(outcomes, areas, strict=True)
            if outcome.died
            for sequence, slot in area.settle_after_death().items()
        }
        return History(
            [area.sequences for area in areas],
            [area.begins for area in areas],
            [area.ends for area in areas],
            acks.latest_begins(areas, pulse),
            unknown,
            # A server may do what a process had asked for when that has died already.
            {} if serves(self.case.driver) else ends_of_the_dead(outcomes),
        )

    def check_keys(self, history: History, pulse: Pulse) -> Check:
        """Hold every row against what the workers were told."""
        keys, slots = self.case.spec.key_space, acks.shape_of(self.case).slots
        seen, slot_of = bytearray(keys), acks.Slots(keys, slots).slot
        rows = self._rows(seen, slot_of, pulse)
        return check_keys(history, rows, self._missing(seen, pulse), self._tracked())

    def _rows(self, seen: bytearray, slot_of: Callable[[int], int], pulse: Pulse) -> Iterator[Row]:
        """Yield every row of every bucket. One in the wrong bucket is foreign."""
        key_type, key_space = self.case.spec.key_type, self.case.spec.key_space
        bucket_of, preloaded = self.placement.bucket, self.values.maker(0)
        assert self.table
        for bucket in range(self.case.buckets):
            for key, value in paced(self.table.rows(bucket), pulse):
                number = number_of(key, key_type)
                if number is None or number >= key_space or bucket_of(number) != bucket:
                    yield self.astray(key, bucket), None, None
                    continue
                seen[number] = 1
                slot = slot_of(number)
                stamp: Stamp | None = PRELOADED
                if value != preloaded(number) or isinstance(value, float):
                    stamp = self.values.read(value)
                    if stamp and not 1 <= stamp.worker <= self.case.concurrency:
                        stamp = None
                yield repr(key), None if slot < 0 else slot, stamp

    def astray(self, key: object, bucket: int) -> str:
        """Return in words which key lies in a bucket where it does not belong."""
        assert self.table
        return f"{key!r:.80} (which does not belong into {self.table.name(bucket)})"

    def _missing(self, seen: bytearray, pulse: Pulse) -> Iterator[str]:
        """Yield every key, in words, that was not found."""
        encode, number = encoder(self.case.spec.key_type), seen.find(0)
        while number >= 0:
            pulse()
            yield repr(encode(number))
            number = seen.find(0, number + 1)

    def _check_counters(self, areas: Sequence[acks.Area], deaths: int) -> Check:
        acknowledged: dict[str, int] = {}
        stored: dict[str, object] = {}
        assert self.table
        for bucket in range(self.case.buckets):
            name, first = self.table.name(bucket), bucket * acks.COUNTERS
            stored.update((f"{name}:{counter}", n) for counter, n in self.table.counters(bucket))
            for counter in range(acks.COUNTERS):
                acknowledged[f"{name}:{counter}"] = sum(area.counts[first + counter] for area in areas)
        return check_counters(stored, acknowledged, deaths)


class ClassicWork(KeyValueWork):
    """The published script's: the same files serve the whole sweep, and `carry` keeps what they hold."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.salt = salt
        # What trials must have in common to be one sweep over the same files.
        sweep = replace(case, concurrency=1)
        self._fresh = carry.get(("classic", case.buckets)) != sweep
        if self._fresh:
            carry["classic", case.buckets] = sweep
            carry["rows", case.buckets] = {}
        self._earlier: dict[int, Any] = carry["rows", case.buckets]

    def prepare(self, pulse: Pulse) -> None:
        self.share(pulse)
        ProvenWork.prepare(self, pulse)

    def create(self, pulse: Pulse) -> None:
        """Create the buckets before the first trial of a layout."""
        if self._fresh:
            assert self.table
            self.table.create(pulse)

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        return trial

    def discard(self) -> None:
        """Keep the data: it serves the whole sweep."""

    def check_keys(self, history: History, pulse: Pulse) -> Check:
        """Say whether the data is what the workers were told it is, and the older rows are as they were."""
        ours, by_key = self._by_key(history, pulse)
        rows: dict[int, Any] = {}
        missing = (repr(key) for key in paced((*self._earlier, *by_key.latest), pulse) if key not in rows)
        check = check_keys(by_key, self._classic_rows(rows, ours, pulse), missing)
        self._earlier.clear()
        self._earlier.update(rows)
        return check

    def _by_key(self, history: History, pulse: Pulse) -> tuple[set[int], History]:
        """Return the keys of this trial, and what the workers were told of them instead of their sets.

        A key is its own slot; of one that was never set nothing is kept, which counts as 0.
        """
        ours: set[int] = set()
        sequences, begins, ends = ([Counter[int]() for _ in history.sequences] for _ in range(3))
        latest, unknown = Counter[int](), dict(history.unknown)
        for index, numbers in enumerate(history.sequences):
            pulse()
            drawn = drawn_keys(self.case, self.salt, index + 1)
            ours.update(drawn)
            unknown |= {stamp: drawn[place] for stamp, place in unknown.items() if stamp.worker == index + 1}
            # In the order of its sets, so that of a key drawn twice the later one stays.
            for place, key in enumerate(drawn):
                if numbers[place]:
                    sequences[index][key] = numbers[place]
                    begins[index][key] = history.begins[index][place]
                    ends[index][key] = history.ends[index][place]
                    latest[key] = max(latest[key], begins[index][key])
        return ours, History(sequences, begins, ends, latest, unknown, history.over)

    def _classic_rows(self, rows: dict[int, Any], ours: set[int], pulse: Pulse) -> Iterator[Row]:
        """Yield every row of every bucket, and put those into `rows` that lie where they belong."""
        assert self.table
        for bucket in range(self.case.buckets):
            for key, value in paced(self.table.rows(bucket), pulse):
                if not isinstance(key, int) or key % self.case.buckets != bucket:
                    yield self.astray(key, bucket), None, None
                    continue
                rows[key] = value
                if key in self._earlier and self._earlier[key] == value:
                    yield repr(key), key, PRELOADED
                else:
                    yield repr(key), key, self.values.read(value) if key in ours else None


# The proof, as pure functions: from what the workers were told to what the database says.
#
# For each key, the value found must be some worker's last acknowledged write to it, and no other
# acknowledged write to that key may have begun after that one completed. Overlapping writes may end
# either way. A write that was under way when its worker died may be there or not, but not instead of one
# that began after that.


PRELOADED = Stamp(0, 0)
"""Stands for the value that the key had before the trial."""


Column = Sequence[int] | Mapping[int, int]
"""A number for each slot."""


@dataclass(slots=True)
class History:
    """What the workers were told: by worker (from 0: worker 1) and slot; times on one shared clock."""

    sequences: Sequence[Column]
    """Sequence number of the last acknowledged write; 0: none."""
    begins: Sequence[Column]
    ends: Sequence[Column]
    latest: Column
    """The latest begin of any worker's acknowledged write; 0: none."""
    unknown: Mapping[Stamp, int] = field(default_factory=dict)
    """Writes of which nobody knows whether they were done, and the slot that each was meant for."""
    over: Mapping[int, int] = field(default_factory=dict)
    """When workers that died had certainly ended, by worker: what was not done by then never was."""

    def objection(self, slot: int, found: Stamp) -> str | None:
        """Say what is wrong with the write found at a slot; None when nothing is."""
        worker, sequence = found
        latest = self.latest[slot]
        if self.unknown.get(found) == slot:  # under way when its worker died
            if latest <= self.over.get(worker, latest):
                return None
            later = self._last(slot)
            return f"holds write {sequence} of worker {worker}, who died in it, but {later} began after that"
        if found == PRELOADED:
            return f"holds its earlier value, but {self._last(slot)} was acknowledged" if latest else None
        if not 1 <= worker <= len(self.sequences):
            return f"holds a value of worker {worker}, who does not exist"
        last = self.sequences[worker - 1][slot]
        if sequence != last:
            none = "none of its writes was acknowledged"
            told = f"write {last} is its last acknowledged one" if last else none
            return f"holds worker {worker}'s write {sequence}, but {told}"
        if self.ends[worker - 1][slot] < latest:
            later = self._last(slot)
            return f"holds worker {worker}'s write {sequence}, but {later} began after that one completed"
        return None

    def _last(self, slot: int) -> str:
        begins = [column[slot] for column in self.begins]
        worker = begins.index(max(begins))
        return f"worker {worker + 1}'s write {self.sequences[worker][slot]}"


def ends_of_the_dead(outcomes: Iterable[Outcome]) -> dict[int, int]:
    """Return when the workers that died had ended, of those of whom it is known."""
    return {outcome.worker: outcome.over_ns for outcome in outcomes if outcome.died and outcome.over_ns}


def check_keys(history: History, rows: Iterable[Row], missing: Iterable[str], note: str = "") -> Check:
    """Judge every row that was found; `missing` are the keys that were not."""
    tally = Tally("last write")
    for key, slot, stamp in rows:
        tally.checked += 1
        if stamp is None:
            tally.problem(f"key {key} holds a value that nobody wrote")
        elif slot is not None and (text := history.objection(slot, stamp)):
            tally.problem(f"key {key} {text}")
    for key in missing:
        tally.problem(f"key {key} is gone")
    return tally.check(note)


def check_counters(stored: Mapping[str, object], acknowledged: Mapping[str, int], maybe: int) -> Check:
    """Compare counters with the acknowledged updates; `maybe` updates of dead workers may be there too."""
    tally = Tally("lost updates")
    extra: dict[str, int] = {}
    for name, updates in acknowledged.items():
        tally.checked += 1
        value = stored.get(name)
        if name not in stored:
            tally.problem(f"counter {name} is gone")
        elif not isinstance(value, int):
            tally.problem(f"counter {name} is {value!r:.40}, which is not a number of updates")
        elif value < updates:
            tally.problem(f"counter {name} is {value} after {updates} acknowledged updates")
        elif value > updates:
            extra[name] = value - updates
    for name in stored.keys() - acknowledged.keys():
        tally.problem(f"counter {name} is there, and nobody made it")
    if sum(extra.values()) > maybe:
        where = ", ".join(f"{name} {more}" for name, more in [*extra.items()][:EXAMPLES])
        tally.problem(
            f"the counters hold {sum(extra.values())} more than was acknowledged, and at most {maybe} are "
            f"accounted for: {where}"
        )
    return tally.check()
