"""The parent's half of the published measurement: the same files serve the whole sweep."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from sqlstress.engine.examine import examined, integrity_check, reading_checks, schema_check, unverified
from sqlstress.engine.protocols import Outcome, Work
from sqlstress.engine.values import Stamp, Values
from sqlstress.experiments.kv import acks, proof
from sqlstress.experiments.kv.classic import drawn_keys, shape_of
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.system.pulse import Pulse, paced
from sqlstress.system.sharing import shared_array
from sqlstress.targets import DRY
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers.base import Row
from sqlstress.targets.sqlite.integrity import schema
from sqlstress.targets.sqlite.partition import modulo


class ClassicWork(Work):
    """The parent's half; `carry` keeps what the files hold from one trial to the next."""

    def __init__(self, case: Case, folder: Path, salt: int, carry: dict[Any, Any]) -> None:
        self.case, self.folder, self.salt = case, folder, salt
        self.shape = shape_of(case)
        words = shared_array("q", self.shape.words * case.concurrency)
        self._words = memoryview(words).cast("B").cast("q")
        self.shared = (words,)
        self.values = Values(salt, case.spec.value_size)
        self._schema: list[Row] = []
        self._fresh = carry.get(("classic", case.buckets)) != self._kind()
        carry["classic", case.buckets] = self._kind()
        self._rows: dict[int, Any] = {} if self._fresh else carry["rows", case.buckets]
        carry["rows", case.buckets] = self._rows

    def _kind(self) -> Case:
        """Return what trials must have in common to be one sweep over the same files."""
        return replace(self.case, concurrency=1)

    def prepare(self, pulse: Pulse) -> None:
        """Create the files before the first trial of a layout."""
        if self.case.driver == DRY:
            return
        paths = files.paths(self.case, self.folder)
        if self._fresh:
            files.remove(self.case, self.folder)
            for path in paths:
                pulse()
                files.create_empty(self.case, path)
        self._schema = schema(self.case, paths[0])

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Say whether the data is what the workers were told it is, and the older rows are as they were."""
        if self.case.driver == DRY or self.case.verify == "none":
            return unverified(self.case)
        begun = time.perf_counter()
        checks = [
            *reading_checks(outcomes),
            integrity_check(self.case, self.folder, pulse),
            examined("schema", lambda: schema_check(self.case, self.folder, self._schema, pulse)),
            examined("last write", lambda: self._check_keys(outcomes, pulse)),
        ]
        return Verdict(tuple(checks), time.perf_counter() - begun)

    def _check_keys(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        ours, history = self._history(outcomes, pulse)
        rows, astray = self._scan(pulse)
        earlier = dict(self._rows)
        found = (
            (repr(key), key, self._writer(key, value, earlier, ours))
            for key, value in paced(rows.items(), pulse)
        )
        strangers: Iterator[tuple[str, int | None, Stamp | None]] = ((text, None, None) for text in astray)
        missing = (repr(key) for key in paced((*earlier, *history.latest), pulse) if key not in rows)
        check = proof.check_keys(history, chain(strangers, found), missing)
        self._rows.clear()
        self._rows.update(rows)
        return check

    def _history(self, outcomes: Sequence[Outcome], pulse: Pulse) -> tuple[set[int], proof.History]:
        """Return the keys of this trial, and what the workers were told of them.

        A key is its own slot; of one that was never set nothing is kept, which counts as 0.
        """
        ours: set[int] = set()
        sequences, begins, ends = ([Counter[int]() for _ in outcomes] for _ in range(3))
        latest = Counter[int]()
        unknown: dict[Stamp, int] = {}
        for index, outcome in enumerate(outcomes):
            pulse()
            drawn = drawn_keys(self.case, self.salt, outcome.worker)
            ours.update(drawn)
            area = acks.Area(self._words, self.shape, outcome.worker)
            if outcome.died:
                for sequence, own in area.settle_after_death().items():
                    unknown[Stamp(outcome.worker, sequence)] = drawn[own]
            # In the order of its sets, so that of a key drawn twice the later one stays.
            for own, key in enumerate(drawn):
                if area.sequences[own]:
                    sequences[index][key] = area.sequences[own]
                    begins[index][key] = area.begins[own]
                    ends[index][key] = area.ends[own]
                    latest[key] = max(latest[key], area.begins[own])
        return ours, proof.History(sequences, begins, ends, latest, unknown, proof.ends_of_the_dead(outcomes))

    def _scan(self, pulse: Pulse) -> tuple[dict[int, Any], list[str]]:
        """Return every row that is in the file of its key, and the other rows' keys in words."""
        rows: dict[int, Any] = {}
        astray: list[str] = []
        buckets = self.case.buckets
        for bucket, path in enumerate(files.paths(self.case, self.folder)):
            with files.opened(self.case, path) as connection:
                for key, value in paced(connection.iterate("SELECT key, value FROM kv"), pulse):
                    if isinstance(key, int) and modulo(key, buckets) == bucket:
                        rows[key] = value
                    else:
                        astray.append(f"{key!r:.80} (which does not belong into {path.name})")
        return rows, astray

    def _writer(self, key: int, value: Any, earlier: dict[int, Any], ours: set[int]) -> Stamp | None:
        if key in earlier and earlier[key] == value:
            return proof.PRELOADED
        return self.values.read(value) if key in ours else None

    def discard(self) -> None:
        """Keep the files: they serve the whole sweep."""
