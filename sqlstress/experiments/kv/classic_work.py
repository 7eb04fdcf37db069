"""The parent's half of the published measurement: the same files serve the whole sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from sqlstress.engine.proofs import ProvenWork, examined, reading_checks
from sqlstress.engine.protocols import Outcome
from sqlstress.engine.values import Stamp, Values
from sqlstress.experiments.kv import acks, work
from sqlstress.experiments.kv.classic_worker import drawn_keys, modulo, shape_of
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse, paced
from sqlstress.system.sharing import shared_array
from sqlstress.targets.place import Place


class ClassicWork(ProvenWork):
    """The parent's half; `carry` keeps what the files hold from one trial to the next."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.salt = salt
        self.table = place.table(case.spec.key_type, case.spec.value_size, counters=0)
        self.shape = shape_of(case)
        words = shared_array("q", self.shape.words * case.concurrency)
        self._words = memoryview(words).cast("B").cast("q")
        self.shared = (words,)
        self.values = Values(salt, case.spec.value_size)
        self._fresh = carry.get(("classic", case.buckets)) != self._kind()
        carry["classic", case.buckets] = self._kind()
        self._rows: dict[int, Any] = {} if self._fresh else carry["rows", case.buckets]
        carry["rows", case.buckets] = self._rows

    def _kind(self) -> Case:
        """Return what trials must have in common to be one sweep over the same files."""
        return replace(self.case, concurrency=1)

    def create(self, pulse: Pulse) -> None:
        """Create the buckets before the first trial of a layout."""
        if self._fresh:
            assert self.table
            self.table.create(pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Say whether the data is what the workers were told it is, and the older rows are as they were."""
        yield from reading_checks(outcomes)
        yield from self.sound(pulse)
        yield examined("last write", lambda: self._check_keys(outcomes, pulse))

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
        check = work.check_keys(history, chain(strangers, found), missing)
        self._rows.clear()
        self._rows.update(rows)
        return check

    def _history(self, outcomes: Sequence[Outcome], pulse: Pulse) -> tuple[set[int], work.History]:
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
        return ours, work.History(sequences, begins, ends, latest, unknown, work.ends_of_the_dead(outcomes))

    def _scan(self, pulse: Pulse) -> tuple[dict[int, Any], list[str]]:
        """Return every row that is in the bucket of its key, and the other rows' keys in words."""
        rows: dict[int, Any] = {}
        astray: list[str] = []
        buckets = self.case.buckets
        assert self.table
        for bucket in range(buckets):
            for key, value in paced(self.table.rows(bucket), pulse):
                if isinstance(key, int) and modulo(key, buckets) == bucket:
                    rows[key] = value
                else:
                    astray.append(f"{key!r:.80} (which does not belong into {self.table.name(bucket)})")
        return rows, astray

    def _writer(self, key: int, value: Any, earlier: dict[int, Any], ours: set[int]) -> Stamp | None:
        if key in earlier and earlier[key] == value:
            return work.PRELOADED
        return self.values.read(value) if key in ours else None

    def discard(self) -> None:
        """Keep the data: it serves the whole sweep."""
