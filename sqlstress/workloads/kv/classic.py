"""The published measurement: a worker's half, and the parent's.

Each worker draws 5,000 keys, sets each in a transaction of its own (a deferred BEGIN, the replace,
COMMIT), shuffles them and gets each. The same files serve the whole sweep. Source: the benchmark
whose tables `--preset classic` sets one's own beside; see docs/classic.md.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from random import Random
from typing import Any

from sqlstress.case import Case
from sqlstress.report import Check, Verdict
from sqlstress.stores import DRY, files
from sqlstress.stores.partition import modulo
from sqlstress.workloads.base import GET, REPLACE, Chunk, Outcome
from sqlstress.workloads.kv import acks, proof
from sqlstress.workloads.kv.examine import examined, integrity_check, reading_checks, unverified
from sqlstress.workloads.kv.source import KeyValueSource
from sqlstress.workloads.kv.values import Stamp, Values

LARGEST_KEY = 1 << 31


def drawn_keys(case: Case, salt: int, worker: int) -> list[int]:
    """Return a worker's keys, in the order in which it sets them."""
    randint = Random(f"{case.seed}:{salt}:{worker}").randint
    return [randint(0, LARGEST_KEY) for _ in range(case.ops or 0)]


def shape_of(case: Case) -> acks.Shape:
    """Return the shape of a worker's area: each of its sets has a slot of its own."""
    return acks.Shape(1, acks.CHUNK_ROWS, case.ops or 0, 0)


class ClassicSource(KeyValueSource):
    """Sets all of its keys, then gets them shuffled."""

    def __init__(self, case: Case, folder: Path, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        self._open(case, folder, worker, salt, shared[0], shape_of(case))
        keys = drawn_keys(case, salt, worker)
        shuffled = list(keys)
        Random(f"{case.seed}:{salt}:{worker}:shuffle").shuffle(shuffled)
        self._operations = iter([(REPLACE, key) for key in keys] + [(GET, key) for key in shuffled])
        self._slot = 0

    def next_chunk(self, size: int) -> Chunk | None:
        first, kinds, calls, params, rows = self._slot + 1, bytearray(), [], [], array("q")
        for kind, key in islice(self._operations, size):
            bucket = modulo(key, self.case.buckets)
            kinds.append(kind)
            if kind == REPLACE:
                calls.append(self.store.batches[bucket])
                params.append([(key, self._make_value(self._slot + 1))])
                rows.append(self._slot)
                self._slot += 1
            else:
                calls.append(self.store.gets[bucket])
                params.append((key,))
                rows.append(acks.READ)
        if not kinds:
            return None
        self.area.announce(rows, first, len(kinds))
        return Chunk(kinds, calls, params, rows)


open_source = ClassicSource


class ClassicWork:
    """The parent's half; `carry` keeps what the files hold from one trial to the next."""

    def __init__(self, case: Case, folder: Path, salt: int, carry: dict[Any, Any]) -> None:
        self.case, self.folder, self.salt = case, folder, salt
        self.shape = shape_of(case)
        words = RawArray("q", self.shape.words * case.concurrency)
        self._words = memoryview(words).cast("B").cast("q")
        self.shared = (words,)
        self.values = Values(salt, case.load.value_size)
        self._fresh = carry.get(("classic", case.buckets)) != self._kind()
        carry["classic", case.buckets] = self._kind()
        self._rows: dict[int, Any] = {} if self._fresh else carry["rows", case.buckets]
        carry["rows", case.buckets] = self._rows

    def _kind(self) -> Case:
        """Return what trials must have in common to be one sweep over the same files."""
        return replace(self.case, concurrency=1)

    def prepare(self, pulse: Callable[[], None]) -> None:
        """Create the files before the first trial of a layout."""
        if self.case.driver == DRY:
            return
        if not self._fresh:
            return
        files.remove(self.case, self.folder)
        for path in files.paths(self.case, self.folder):
            pulse()
            files.create_empty(self.case, path)

    def verify(self, outcomes: Sequence[Outcome], pulse: Callable[[], None]) -> Verdict:
        """Say whether the data is what the workers were told it is, and the older rows are as they were."""
        if self.case.driver == DRY or self.case.verify == "none":
            return unverified(self.case)
        begun = time.perf_counter()
        checks = [
            *reading_checks(outcomes),
            integrity_check(self.case, self.folder, pulse),
            examined("last write", lambda: self._check_keys(outcomes, pulse)),
        ]
        return Verdict(tuple(checks), time.perf_counter() - begun)

    def _check_keys(self, outcomes: Sequence[Outcome], pulse: Callable[[], None]) -> Check:
        slots, history = self._history(outcomes)
        rows = dict(self._scan(pulse))
        earlier = dict(self._rows)
        found = ((repr(key), slots.get(key), self._writer(key, value, earlier, slots)) for key, value in rows.items())
        missing = (repr(key) for key in (*earlier, *self._told(slots, history)) if key not in rows)
        check = proof.check_keys(history, found, missing)
        self._rows.clear()
        self._rows.update(rows)
        return check

    @staticmethod
    def _told(slots: dict[int, int], history: proof.History) -> Iterator[int]:
        return (key for key, slot in slots.items() if history.latest[slot])

    def _history(self, outcomes: Sequence[Outcome]) -> tuple[dict[int, int], proof.History]:
        """Return the slot of every key of this trial, and what the workers were told of it."""
        drawn = [drawn_keys(self.case, self.salt, outcome.worker) for outcome in outcomes]
        slots = {key: slot for slot, key in enumerate(dict.fromkeys(key for keys in drawn for key in keys))}
        columns = [[[0] * len(slots) for _ in outcomes] for _ in range(3)]
        unknown: set[Stamp] = set()
        for index, outcome in enumerate(outcomes):
            area = acks.Area(self._words, self.shape, outcome.worker)
            if outcome.died:
                unknown.update(Stamp(outcome.worker, sequence) for sequence in area.settle_after_death())
            # In the order of its sets, so that of a key drawn twice the later one stays.
            for own, key in enumerate(drawn[index]):
                if area.sequences[own]:
                    for column, source in zip(columns, (area.sequences, area.begins, area.ends), strict=True):
                        column[index][slots[key]] = source[own]
        return slots, proof.History(*columns, frozenset(unknown))

    def _scan(self, pulse: Callable[[], None]) -> Iterator[tuple[int, Any]]:
        for path in files.paths(self.case, self.folder):
            pulse()
            with files.opened(self.case, path) as connection:
                yield from connection.iterate("SELECT key, value FROM kv")  # type: ignore[misc]

    def _writer(self, key: int, value: Any, earlier: dict[int, Any], slots: dict[int, int]) -> Stamp | None:
        if key in earlier and earlier[key] == value:
            return proof.PRELOADED
        return self.values.read(value) if key in slots else None

    def discard(self) -> None:
        """Keep the files: they serve the whole sweep."""
