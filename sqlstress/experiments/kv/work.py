"""The parent's half of the key-value workload: preload, verification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlstress.engine.harness_cost import bare_call_ns
from sqlstress.engine.proofs import ProvenWork, examined, reading_checks
from sqlstress.engine.protocols import Outcome
from sqlstress.engine.values import Stamp, Values
from sqlstress.experiments.kv import acks, companion_names
from sqlstress.experiments.kv.keys import encoder, number_of
from sqlstress.experiments.kv.partition import by_bucket_once, shared_arrays_once
from sqlstress.experiments.kv.placement import Placement, check_room
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import EXAMPLES, Tally
from sqlstress.system.interrupt import Pulse, paced
from sqlstress.system.sharing import shared_array
from sqlstress.target import serves
from sqlstress.targets.place import Place


class KeyValueWork(ProvenWork):
    """One trial's data, shared memory and verdict."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        counters = acks.COUNTERS if case.spec.update_ratio else 0
        self.table = place.table(case.spec.key_type, case.spec.value_size, counters)
        self.shape = acks.shape_of(case, case.spec.key_space)
        self.values = Values(salt, case.spec.value_size)
        self.slots = acks.Slots(case.spec.key_space, self.shape.slots)
        self.shared: tuple[Any, ...] = ()
        self.companions = companion_names.names(case)
        self._carry, self._bare_call = carry, ("bare call", case.driver)

    def prepare(self, pulse: Pulse) -> None:
        """Make the shared arrays; create and preload every bucket; see that settings were taken."""
        self._share(pulse)
        super().prepare(pulse)
        self._time_bare_call(pulse)

    def _time_bare_call(self, pulse: Pulse) -> None:
        """Learn once what the binding costs that the loop calls; the one in C calls none."""
        if self.place.stores and self.case.spec.loop == "python" and self._bare_call not in self._carry:
            self._carry[self._bare_call] = bare_call_ns(self.place, pulse)

    def create(self, pulse: Pulse) -> None:
        numbers = by_bucket_once(self.case, self.placement, self._carry, pulse)
        assert self.table
        self.table.fill((self._preload(of_bucket, pulse) for of_bucket in numbers), pulse)

    def _share(self, pulse: Pulse) -> None:
        bucket_table, order = shared_arrays_once(self.case, self._carry, pulse)
        self.placement = Placement(self.case, bucket_table, order)
        if self.case.spec.batch > 1:
            check_room(self.case, self.placement)
        words = shared_array("q", self.shape.words * self.case.concurrency)
        self._words = memoryview(words).cast("B").cast("q")
        self.shared = (words, bucket_table, order)
        if self.case.spec.where:
            self.trace = self.place.trace(self.case.concurrency + len(self.companions))

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Add what the binding costs, and where the time went, if that was asked for."""
        trial = replace(trial, bare_call_ns=self._carry.get(self._bare_call))
        if self.trace is None:
            return trial
        return replace(trial, where=self.place.account(self.trace, trial.workers))

    def connected(self) -> None:
        if self.table:
            self.table.release()

    def _preload(self, numbers: Sequence[int], pulse: Pulse) -> Iterator[tuple[Any, Any]]:
        keys = map(encoder(self.case.spec.key_type), paced(numbers, pulse))
        return zip(keys, map(self.values.maker(0), numbers), strict=True)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        areas = [acks.Area(self._words, self.shape, outcome.worker) for outcome in outcomes]
        unknown = self._unknown(outcomes, areas)
        yield from reading_checks(outcomes)
        yield from self.sound(pulse)
        # A server may do what a process had asked for when that has died already.
        over = {} if serves(self.case.driver) else ends_of_the_dead(outcomes)
        yield examined("last write", lambda: self._check_keys(areas, unknown, over, pulse))
        if self.case.spec.update_ratio:
            deaths = sum(outcome.died for outcome in outcomes)
            yield examined("lost updates", lambda: self._check_counters(areas, deaths))

    @staticmethod
    def _unknown(outcomes: Sequence[Outcome], areas: Sequence[acks.Area]) -> dict[Stamp, int]:
        return {
            Stamp(outcome.worker, sequence): slot
            for outcome, area in zip(outcomes, areas, strict=True)
            if outcome.died
            for sequence, slot in area.settle_after_death().items()
        }

    def _check_keys(
        self, areas: Sequence[acks.Area], unknown: dict[Stamp, int], over: dict[int, int], pulse: Pulse
    ) -> Check:
        history = History(
            [area.sequences for area in areas],
            [area.begins for area in areas],
            [area.ends for area in areas],
            acks.latest_begins(areas, pulse),
            unknown,
            over,
        )
        seen = bytearray(self.case.spec.key_space)
        covered = self.slots.covered()
        note = "" if covered == 1 else f"last writes tracked for {covered:.0%} of the keys"
        return check_keys(history, self._found(seen, pulse), self._missing(seen, pulse), note)

    def _found(self, seen: bytearray, pulse: Pulse) -> Iterator[tuple[str, int | None, Stamp | None]]:
        """Yield every row of every bucket: key in words, slot, write. One in the wrong bucket is foreign."""
        key_type, key_space = self.case.spec.key_type, self.case.spec.key_space
        bucket_of, slot_of, preloaded = self.placement.bucket, self.slots.slot, self.values.maker(0)
        assert self.table
        for bucket in range(self.case.buckets):
            for key, value in paced(self.table.rows(bucket), pulse):
                number = number_of(key, key_type)
                if number is None or number >= key_space or bucket_of(number) != bucket:
                    name = self.table.name(bucket)
                    yield f"{key!r:.80} (which does not belong into {name})", None, None
                    continue
                seen[number] = 1
                slot = slot_of(number)
                untouched = value == preloaded(number) and not isinstance(value, float)
                stamp = PRELOADED if untouched else self._writer(value)
                yield repr(key), None if slot < 0 else slot, stamp

    def _missing(self, seen: bytearray, pulse: Pulse) -> Iterator[str]:
        """Yield every key, in words, that was not found."""
        encode = encoder(self.case.spec.key_type)
        number = seen.find(0)
        while number >= 0:
            pulse()
            yield repr(encode(number))
            number = seen.find(0, number + 1)

    def _writer(self, value: object) -> Stamp | None:
        """Return which write of a worker a value is of; None when of none."""
        stamp = self.values.read(value)
        return stamp if stamp and 1 <= stamp.worker <= self.case.concurrency else None

    def _check_counters(self, areas: Sequence[acks.Area], deaths: int) -> Check:
        told: dict[str, int] = {}
        found: dict[str, object] = {}
        assert self.table
        for bucket in range(self.case.buckets):
            name, first = self.table.name(bucket), bucket * acks.COUNTERS
            found.update((f"{name}:{counter}", n) for counter, n in self.table.counters(bucket))
            for counter in range(acks.COUNTERS):
                told[f"{name}:{counter}"] = sum(area.counts[first + counter] for area in areas)
        return check_counters(found, told, deaths)


# The proof, as pure functions: from what the workers were told to what the database says.
#
# For each key, the value found must be some worker's last acknowledged write to it, and no other
# acknowledged write to that key may have begun after that one completed. Overlapping writes may end
# either way. A write that was under way when its worker died may be there or not, but not instead of one
# that
# began after that.


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
        if self.unknown.get(found) == slot:
            return self._late(slot, found)
        if found == PRELOADED:
            return (
                f"holds its earlier value, but {self._last(slot)} was acknowledged"
                if self.latest[slot]
                else None
            )
        worker, sequence = found
        if not 1 <= worker <= len(self.sequences):
            return f"holds a value of worker {worker}, who does not exist"
        last = self.sequences[worker - 1][slot]
        if sequence != last:
            told = (
                f"write {last} is its last acknowledged one"
                if last
                else "none of its writes was acknowledged"
            )
            return f"holds worker {worker}'s write {sequence}, but {told}"
        if self.ends[worker - 1][slot] < self.latest[slot]:
            later = self._last(slot)
            return f"holds worker {worker}'s write {sequence}, but {later} began after that one completed"
        return None

    def _late(self, slot: int, found: Stamp) -> str | None:
        """Say what is wrong with a write that was under way when its worker died."""
        worker, sequence = found
        if self.latest[slot] <= self.over.get(worker, self.latest[slot]):
            return None
        later = self._last(slot)
        return f"holds write {sequence} of worker {worker}, who died in it, but {later} began after that"

    def _last(self, slot: int) -> str:
        begins = [column[slot] for column in self.begins]
        worker = begins.index(max(begins))
        return f"worker {worker + 1}'s write {self.sequences[worker][slot]}"


def ends_of_the_dead(outcomes: Iterable[Outcome]) -> dict[int, int]:
    """Return when the workers that died had ended, of those of whom it is known."""
    return {outcome.worker: outcome.over_ns for outcome in outcomes if outcome.died and outcome.over_ns}


def check_keys(
    history: History,
    found: Iterable[tuple[str, int | None, Stamp | None]],
    missing: Iterable[str],
    note: str = "",
) -> Check:
    """Judge every row that was found.

    A row is (key in words, its slot or None if not tracked, its write or None if nobody's).
    """
    tally = Tally("last write")
    for key, slot, stamp in found:
        tally.checked += 1
        if stamp is None:
            tally.problem(f"key {key} holds a value that nobody wrote")
        elif slot is not None and (text := history.objection(slot, stamp)):
            tally.problem(f"key {key} {text}")
    for key in missing:
        tally.problem(f"key {key} is gone")
    return tally.check(note)


def check_counters(found: Mapping[str, object], told: Mapping[str, int], maybe: int) -> Check:
    """Compare counters with the acknowledged updates; `maybe` updates of dead workers may be there too."""
    tally = Tally("lost updates")
    extra: dict[str, int] = {}
    for name, acknowledged in told.items():
        tally.checked += 1
        value = found.get(name)
        if name not in found:
            tally.problem(f"counter {name} is gone")
        elif not isinstance(value, int):
            tally.problem(f"counter {name} is {value!r:.40}, which is no number of updates")
        elif value < acknowledged:
            tally.problem(f"counter {name} is {value} after {acknowledged} acknowledged updates")
        elif value > acknowledged:
            extra[name] = value - acknowledged
    for name in found.keys() - told.keys():
        tally.problem(f"counter {name} is there, and nobody made it")
    if sum(extra.values()) > maybe:
        where = ", ".join(f"{name} {more}" for name, more in [*extra.items()][:EXAMPLES])
        tally.problem(
            f"the counters hold {sum(extra.values())} more than was acknowledged, and at most {maybe} are "
            f"accounted for: {where}"
        )
    return tally.check()
