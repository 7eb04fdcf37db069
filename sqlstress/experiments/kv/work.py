"""The parent's half of the key-value workload: files, preload, verification."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlstress.engine.examine import examined, integrity_check, reading_checks, schema_check, unverified
from sqlstress.engine.protocols import Outcome, Work
from sqlstress.engine.values import Stamp, Values
from sqlstress.experiments.kv import acks, beside, proof
from sqlstress.experiments.kv.keys import encoder, number_of
from sqlstress.experiments.kv.placement import Placement, check_room, shared_arrays
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.system.pulse import Pulse, paced
from sqlstress.system.sharing import shared_array
from sqlstress.targets import COUNTERS, DRY
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import Connection
from sqlstress.targets.sqlite.drivers.base import Row
from sqlstress.targets.sqlite.integrity import schema


class KeyValueWork(Work):
    """One trial's files, shared memory and verdict."""

    def __init__(self, case: Case, folder: Path, salt: int, carry: dict[Any, Any]) -> None:
        self.case, self.folder = case, folder
        self.shape = acks.shape_of(case, case.spec.key_space)
        self.values = Values(salt, case.spec.value_size)
        self.slots = acks.Slots(case.spec.key_space, self.shape.slots)
        self.shared: tuple[Any, ...] = ()
        self.companions = beside.names(case)
        self._idle: list[Connection] = []
        self._schema: list[Row] = []

    def prepare(self, pulse: Pulse) -> None:
        """Make the shared arrays; create and preload every bucket's file; see that settings were taken."""
        self._share(pulse)
        if self.case.driver == DRY:
            return
        files.remove(self.case, self.folder)
        numbers = self.placement.by_bucket(pulse)
        for path, of_bucket in zip(files.paths(self.case, self.folder), numbers, strict=True):
            self._idle.append(files.create(self.case, path, self._preload(of_bucket, pulse)))
            files.first_write(self.case, path)
            pulse()
        self._schema = schema(self.case, path)

    def _share(self, pulse: Pulse) -> None:
        bucket_table, order = shared_arrays(self.case, pulse)
        self.placement = Placement(self.case, bucket_table, order)
        if self.case.spec.batch > 1:
            check_room(self.case, self.placement)
        words = shared_array("q", self.shape.words * self.case.concurrency)
        self._words = memoryview(words).cast("B").cast("q")
        self.shared = (words, bucket_table, order)

    def connected(self) -> None:
        """Close the connections that kept every WAL at its size until the workers had theirs."""
        while self._idle:
            self._idle.pop().close()

    def _preload(self, numbers: Sequence[int], pulse: Pulse) -> Iterator[tuple[Any, Any]]:
        encode, make = encoder(self.case.spec.key_type), self.values.maker(0)
        for number in paced(numbers, pulse):
            yield encode(number), make(number)

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Say whether the data is what the workers were told it is."""
        if self.case.driver == DRY or self.case.verify == "none":
            return unverified(self.case)
        begun = time.perf_counter()
        areas = [acks.Area(self._words, self.shape, outcome.worker) for outcome in outcomes]
        unknown = self._unknown(outcomes, areas)
        checks = [
            *reading_checks(outcomes),
            integrity_check(self.case, self.folder, pulse),
            examined("schema", lambda: schema_check(self.case, self.folder, self._schema, pulse)),
        ]
        over = proof.ends_of_the_dead(outcomes)
        checks.append(examined("last write", lambda: self._check_keys(areas, unknown, over, pulse)))
        if self.case.spec.update_ratio:
            deaths = sum(outcome.died for outcome in outcomes)
            checks.append(examined("lost updates", lambda: self._check_counters(areas, deaths)))
        return Verdict(tuple(checks), time.perf_counter() - begun)

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
        history = proof.History(
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
        return proof.check_keys(history, self._found(seen, pulse), self._missing(seen, pulse), note)

    def _found(self, seen: bytearray, pulse: Pulse) -> Iterator[tuple[str, int | None, Stamp | None]]:
        """Yield every row of every file: key in words, slot, write. A key in the wrong bucket is foreign."""
        load = self.case.spec
        for bucket, path in enumerate(files.paths(self.case, self.folder)):
            with files.opened(self.case, path) as connection:
                for key, value in paced(connection.iterate("SELECT key, value FROM kv"), pulse):
                    number = number_of(key, load.key_type)
                    if number is None or number >= load.key_space or self.placement.bucket(number) != bucket:
                        yield f"{key!r:.80} (which does not belong into {path.name})", None, None
                        continue
                    seen[number] = 1
                    slot = self.slots.slot(number)
                    yield repr(key), None if slot < 0 else slot, self._writer(number, value)

    def _missing(self, seen: bytearray, pulse: Pulse) -> Iterator[str]:
        """Yield every key, in words, that was not found."""
        encode = encoder(self.case.spec.key_type)
        number = seen.find(0)
        while number >= 0:
            pulse()
            yield repr(encode(number))
            number = seen.find(0, number + 1)

    def _writer(self, number: int, value: object) -> Stamp | None:
        stamp = self.values.read(value)
        if stamp is None or stamp.worker > self.case.concurrency:
            return None
        if stamp.worker == 0:
            return proof.PRELOADED if stamp.sequence == number else None
        return stamp

    def _check_counters(self, areas: Sequence[acks.Area], deaths: int) -> Check:
        paths = files.paths(self.case, self.folder)
        told: dict[str, int] = {}
        found: dict[str, object] = {}
        for bucket, path in enumerate(paths):
            with files.opened(self.case, path) as connection:
                rows = connection.rows("SELECT id, n FROM counter ORDER BY id")
            found.update((f"{path.name}:{counter}", n) for counter, n in rows)
            for counter in range(COUNTERS):
                updates = sum(area.counts[bucket * COUNTERS + counter] for area in areas)
                told[f"{path.name}:{counter}"] = updates
        return proof.check_counters(found, told, deaths)

    def discard(self) -> None:
        """Remove the files."""
        files.remove(self.case, self.folder)
