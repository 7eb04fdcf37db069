"""Parent process's part of the key-value load: rows before the load (preload), verification.

Keys are numbered. A slot records the last write to one key. A stamp, part of each written value, is the
writing worker and the write's sequence number.
"""

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
from sqlstress.experiments.kv.spec import companion_names
from sqlstress.experiments.kv.worker import draw_keys
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import MAX_COUNTEREXAMPLES, CheckCounter
from sqlstress.system.interrupt import Pulse, with_pulses
from sqlstress.system.sharing import shared_array
from sqlstress.target import serves
from sqlstress.targets.place import Place

Row = tuple[str, int | None, Stamp | None]
"""Row of the database: key as text, slot of the key's last write, stamp of the row's value.

The slot is None if the key has no slot. The stamp is None if neither the preload nor a worker of the trial
wrote the value.
"""

MAX_KEPT_KEYS = 1_000_000
"""Maximum number of keys for which `partition_arrays` keeps its arrays (at most 6 MB) for later trials."""
_BLOCK = 1 << 14
_WORDS = "acknowledgements"


def partition_arrays(case: Case, carry: dict[Any, Any], pulse: Pulse) -> tuple[Any, Any]:
    """Return two shared arrays: the bucket (database file) of each key, and the keys sorted by bucket.

    The dict `carry` keeps the arrays for later trials. Return (None, None) if there is only one bucket, and
    for `--preset classic`, in which a key's bucket is the key modulo the number of buckets.
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
    order, offset = shared_array("I", load.key_space), 0
    ordered = memoryview(order).cast("B").cast("I")
    for group in groups:
        ordered[offset : offset + len(group)] = group
        offset += len(group)
    if load.key_space <= MAX_KEPT_KEYS:
        carry[kind] = bucket_table, order
    return bucket_table, order


class KeyValueWork(ProvenWork):
    """Parent process's part of a key-value trial: rows, shared memory and verdict."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        load = case.spec
        self.table = place.table(load.key_type, load.value_size, acks.COUNTERS if load.update_ratio else 0)
        self.values = Values(salt, load.value_size)
        self.shared: tuple[Any, ...] = ()
        self.companions = companion_names(case)
        self.carry, self._bare_call = carry, ("bare call", case.driver)

    def share(self, pulse: Pulse) -> None:
        if self.shared:
            return
        bucket_table, order = partition_arrays(self.case, self.carry, pulse)
        self.placement = Placement(self.case, bucket_table, order)
        self.placement.check_room()
        self.words = self._zeros(acks.shape_of(self.case).words * self.case.concurrency)
        self.shared = (self.words, bucket_table, order)
        if self.case.spec.where:
            self.trace = self.place.trace(self.case.concurrency + len(self.companions))

    def _zeros(self, length: int) -> Any:
        words = self.carry.pop(_WORDS, None)
        if words is None or len(words) < length:
            return shared_array("q", length)
        ctypes.memset(words, 0, 8 * length)
        return words

    def prepare(self, pulse: Pulse) -> None:
        self.share(pulse)
        super().prepare(pulse)
        # Measure the cheapest call once per driver. The C loop makes no calls into the driver.
        if self.place.stores and self.case.spec.loop == "python" and self._bare_call not in self.carry:
            self.carry[self._bare_call] = bare_call_ns(self.place, pulse)

    def create(self, pulse: Pulse) -> None:
        assert self.table
        buckets = map(self.placement.members, range(self.case.buckets))
        self.table.fill((self._preload(numbers, pulse) for numbers in buckets), pulse)

    def _preload(self, numbers: Sequence[int], pulse: Pulse) -> Iterator[tuple[Any, Any]]:
        keys = map(encoder(self.case.spec.key_type), with_pulses(numbers, pulse))
        return zip(keys, map(self.values.maker(0), numbers), strict=True)

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Return the trial with the times that --where recorded, and with the time of a bare call.

        The bare call is the driver's cheapest call. It is measured only if the Python loop ran.
        """
        trial = super().complete(trial, pulse)
        if not any(worker.error for worker in trial.workers):  # A failed worker may still write to `words`.
            self.carry[_WORDS] = self.words
        trial = replace(trial, bare_call_ns=self.carry.get(self._bare_call))
        if self.trace is None:
            return trial
        return replace(trial, where=self.place.account(self.trace, trial.workers))

    def ended(self, pulse: Pulse) -> None:
        super().ended(pulse)
        if self.table:
            self.table.settle()

    def release(self) -> None:
        if self.table:
            self.table.release()
        super().release()

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
        self, areas: Sequence[acks.AckArea], deaths: int, pulse: Pulse
    ) -> Iterator[Callable[[], Check | None]]:
        """Check all rows in C while the `with` block runs. Yield a function that waits for the result.

        The function returns a Check with the status "ok" if all rows are right. It returns None if the caller
        must check the rows in Python: after a problem, without the C loop, or after the death of a worker,
        because only Python can record the writes of its last chunk.
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
        right = Check("last write", "ok", load.key_space, note=self._tracking_note())
        with self.place.proving(plan, pulse) as count_rows:
            # C refuses a second row with the same key, so `key_space` rows mean that all keys are present.
            yield lambda: right if count_rows() == load.key_space else None

    def _tracking_note(self) -> str:
        keys, slots = self.case.spec.key_space, acks.shape_of(self.case).slots
        return "" if slots == keys else f"last writes tracked for {slots / keys:.0%} of the keys"

    def history(
        self, outcomes: Sequence[Outcome], areas: Sequence[acks.AckArea], pulse: Pulse
    ) -> ReadHistory:
        """Return all acknowledged writes, including the writes of workers that died."""
        unknown = {
            Stamp(outcome.worker, sequence): slot
            for outcome, area in zip(outcomes, areas, strict=True)
            if outcome.died
            for sequence, slot in area.settle_after_death().items()
        }
        return ReadHistory(
            [area.sequences for area in areas],
            [area.begins for area in areas],
            [area.ends for area in areas],
            acks.latest_begins(areas, pulse),
            unknown,
            # A server may execute a request after the death of the process that sent it. So the death does
            # not limit the time of the last write, and no times of death are given.
            {} if serves(self.case.driver) else death_times(outcomes),
        )

    def check_keys(self, history: ReadHistory, pulse: Pulse) -> Check:
        keys, slots = self.case.spec.key_space, acks.shape_of(self.case).slots
        seen, slot_of = bytearray(keys), acks.Slots(keys, slots).slot
        rows = self._rows(seen, slot_of, pulse)
        return check_keys(history, rows, self._keys_without_row(seen, pulse), self._tracking_note())

    def _rows(self, key_flags: bytearray, slot_of: Callable[[int], int], pulse: Pulse) -> Iterator[Row]:
        """Yield all rows, and set their keys' flags to 1. A row in a wrong bucket has no slot or stamp."""
        key_type, key_space = self.case.spec.key_type, self.case.spec.key_space
        bucket_of, preloaded = self.placement.bucket, self.values.maker(0)
        assert self.table
        for bucket in range(self.case.buckets):
            for key, value in with_pulses(self.table.rows(bucket), pulse):
                number = number_of(key, key_type)
                if number is None or number >= key_space or bucket_of(number) != bucket:
                    yield self.astray(key, bucket), None, None
                    continue
                key_flags[number] = 1
                slot = slot_of(number)
                stamp: Stamp | None = PRELOADED
                if value != preloaded(number) or isinstance(value, float):
                    stamp = self.values.read(value)
                    if stamp and not 1 <= stamp.worker <= self.case.concurrency:
                        stamp = None
                yield repr(key), None if slot < 0 else slot, stamp

    def astray(self, key: object, bucket: int) -> str:
        """Return text on a key that is in a wrong bucket (database file)."""
        assert self.table
        return f"{key!r:.80} (which does not belong into {self.table.name(bucket)})"

    def _keys_without_row(self, key_flags: bytearray, pulse: Pulse) -> Iterator[str]:
        encode, number = encoder(self.case.spec.key_type), key_flags.find(0)
        while number >= 0:
            pulse()
            yield repr(encode(number))
            number = key_flags.find(0, number + 1)

    def _check_counters(self, areas: Sequence[acks.AckArea], deaths: int) -> Check:
        acknowledged: dict[str, int] = {}
        stored: dict[str, object] = {}
        assert self.table
        for bucket in range(self.case.buckets):
            name, first = self.table.name(bucket), bucket * acks.COUNTERS
            stored.update((f"{name}:{counter}", n) for counter, n in self.table.counters(bucket))
            for counter in range(acks.COUNTERS):
                acknowledged[f"{name}:{counter}"] = sum(area.counts[first + counter] for area in areas)
        return check_counters(stored, acknowledged, deaths)


class PresetWork(KeyValueWork):
    """Parent process's part of a trial of `--preset classic`, in which all trials use the same files.

    `carry`, a dict that outlives the trial, keeps the rows of earlier trials. A row of an earlier trial must
    be unchanged unless a write of this trial replaced it.
    """

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.salt = salt
        # All trials of a sweep use the same files, which its first trial creates.
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
        """Create the database files in the first trial of a sweep. Later trials use these files."""
        if self._fresh:
            assert self.table
            self.table.create(pulse)

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        return trial

    def discard(self) -> None:
        """Keep the files, because the next trial adds rows to them."""

    def check_keys(self, history: ReadHistory, pulse: Pulse) -> Check:
        """Return the check of this trial's rows, and of the rows that earlier trials wrote."""
        written, by_key = self._by_key(history, pulse)
        rows: dict[int, Any] = {}
        missing = (
            repr(key) for key in with_pulses((*self._earlier, *by_key.latest), pulse) if key not in rows
        )
        check = check_keys(by_key, self._classic_rows(rows, written, pulse), missing)
        self._earlier.clear()
        self._earlier.update(rows)
        return check

    def _by_key(self, history: ReadHistory, pulse: Pulse) -> tuple[set[int], ReadHistory]:
        """Return the keys that this trial wrote, and `history` with keys instead of slot numbers.

        In `--preset classic`, slot N belongs to a worker's write number N, so its key must be looked up.
        """
        written: set[int] = set()
        sequences, begins, ends = ([Counter[int]() for _ in history.sequences] for _ in range(3))
        latest, unknown = Counter[int](), dict(history.unknown)
        for index, sequence_numbers in enumerate(history.sequences):
            pulse()
            drawn = draw_keys(self.case, self.salt, index + 1)
            written.update(drawn)
            unknown |= {
                stamp: drawn[position] for stamp, position in unknown.items() if stamp.worker == index + 1
            }
            # Go through the writes in order: if a key was drawn twice, its later write replaces the earlier.
            for position, key in enumerate(drawn):
                if sequence_numbers[position]:
                    sequences[index][key] = sequence_numbers[position]
                    begins[index][key] = history.begins[index][position]
                    ends[index][key] = history.ends[index][position]
                    latest[key] = max(latest[key], begins[index][key])
        return written, ReadHistory(sequences, begins, ends, latest, unknown, history.over)

    def _classic_rows(self, rows: dict[int, Any], written: set[int], pulse: Pulse) -> Iterator[Row]:
        """Yield all rows of all files. Store {key: value} of the rows that are in the right file in `rows`.

        `written` has the keys that this trial wrote. Other rows must be unchanged since the last trial.
        """
        assert self.table
        for bucket in range(self.case.buckets):
            for key, value in with_pulses(self.table.rows(bucket), pulse):
                if not isinstance(key, int) or key % self.case.buckets != bucket:
                    yield self.astray(key, bucket), None, None
                    continue
                rows[key] = value
                if key in self._earlier and self._earlier[key] == value:
                    yield repr(key), key, PRELOADED
                else:
                    yield repr(key), key, self.values.read(value) if key in written else None


PRELOADED = Stamp(0, 0)
"""Stamp of all values written before the trial."""

Column = Sequence[int] | Mapping[int, int]
"""Table from a slot to a number, such as the time of a write in ns."""


@dataclass(slots=True)
class ReadHistory:
    """Acknowledged writes, read from shared memory, by worker (index 0 is worker 1) and slot.

    Times are in ns of one clock. A value in the database is right if its write is the last acknowledged write
    of its worker to the key, and if no other acknowledged write to the key began after that write ended. If
    writes overlap in time, any of them may be the last. If a worker died during a write, the database may
    have the value of this write, unless another write to the key began after the death.
    """

    sequences: Sequence[Column]
    """Sequence number of the last acknowledged write, by worker and slot; 0 means no write."""
    begins: Sequence[Column]
    ends: Sequence[Column]
    latest: Column
    """Latest begin of any worker's acknowledged write, in ns, by slot; 0 means no write."""
    unknown: Mapping[Stamp, int] = field(default_factory=dict)
    """Slot of each write that was in progress when its worker died. Such a write may be stored or not."""
    over: Mapping[int, int] = field(default_factory=dict)
    """Time at which a dead worker had certainly ended, in ns, by the worker's number."""

    def objection(self, slot: int, found: Stamp) -> str | None:
        """Return the reason why the value of the write `found` is wrong in a row; None if it may be right."""
        worker, sequence = found
        latest = self.latest[slot]
        if self.unknown.get(found) == slot:  # The write was in progress when its worker died.
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
            expected = f"write {last} is its last acknowledged one" if last else none
            return f"holds worker {worker}'s write {sequence}, but {expected}"
        if self.ends[worker - 1][slot] < latest:
            later = self._last(slot)
            return f"holds worker {worker}'s write {sequence}, but {later} began after that one completed"
        return None

    def _last(self, slot: int) -> str:
        begins = [column[slot] for column in self.begins]
        worker = begins.index(max(begins))
        return f"worker {worker + 1}'s write {self.sequences[worker][slot]}"


def death_times(outcomes: Iterable[Outcome]) -> dict[int, int]:
    """Return {worker: time in ns} for workers that died. The death was at or before this time."""
    return {outcome.worker: outcome.over_ns for outcome in outcomes if outcome.died and outcome.over_ns}


def check_keys(history: ReadHistory, rows: Iterable[Row], missing: Iterable[str], note: str = "") -> Check:
    """Return the check of all rows against the acknowledged writes. `missing` has the keys without a row."""
    tally = CheckCounter("last write")
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
    """Return the check that compares the stored counters with the numbers of acknowledged updates.

    `maybe` is the number of dead workers: each may have stored an update that it did not acknowledge.
    """
    tally = CheckCounter("lost updates")
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
        where = ", ".join(f"{name} {more}" for name, more in [*extra.items()][:MAX_COUNTEREXAMPLES])
        tally.problem(
            f"the counters hold {sum(extra.values())} more than was acknowledged, and at most {maybe} are "
            f"accounted for: {where}"
        )
    return tally.check()
