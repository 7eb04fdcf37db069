"""Random operations of two workers have the same results on a store as on a dict."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.keys import KEY_TYPES, encoder
from sqlstress.report.case import BEGIN_MODES, Case
from sqlstress.target import serves
from sqlstress.targets import open_place
from tests.drawing import examples
from tests.pulses import nothing

VALUES: dict[int, st.SearchStrategy[Any]] = {
    8: st.integers(-(2**63), 2**63 - 1),
    16: st.binary(max_size=40),
    5000: st.binary(min_size=4990, max_size=5010),
}


BUCKETS = 2


class Machine(RuleBasedStateMachine):
    """Applies each operation to a store of one or two workers and to a dict."""

    case: Case
    workers: Sequence[int]
    folders: Iterator[Path]
    buckets = st.integers(0, BUCKETS - 1)
    numbers = st.integers(0, 24)

    @initialize(
        key_type=st.sampled_from(KEY_TYPES),
        size=st.sampled_from([*VALUES]),
        begin=st.sampled_from(BEGIN_MODES),
        data=st.data(),
    )
    def fill(self, key_type: str, size: int, begin: str, data: st.DataObject) -> None:
        self.folder = next(self.folders)
        self.folder.mkdir()
        self.begin, self.encode, self.drawn = begin, encoder(key_type), VALUES[size]
        load = replace(self.case.spec, key_type=key_type, value_size=size, update_ratio=0.1)
        self.place = open_place(replace(self.case, spec=load), self.folder)
        table = self.place.table(key_type, size, COUNTERS)
        assert table
        self.table = table
        self.model: list[dict[Any, Any]] = [
            {self.encode(number): data.draw(self.drawn) for number in range(6)} for _ in range(BUCKETS)
        ]
        self.counters = [dict.fromkeys(range(COUNTERS), 0) for _ in range(BUCKETS)]
        self.table.fill([rows.items() for rows in self.model], nothing)
        self.open()

    def open(self) -> None:
        self.stores = [self.place.keyvalue(worker, self.begin, None) for worker in self.workers]

    @rule(bucket=buckets, number=numbers, which=st.integers(0, 1), data=st.data())
    def put(self, bucket: int, number: int, which: int, data: st.DataObject) -> None:
        row = self.encode(number), data.draw(self.drawn)
        self.stores[which % len(self.stores)].puts[bucket](row)
        self.model[bucket].update([row])

    @rule(
        bucket=buckets, numbers=st.lists(numbers, min_size=1, max_size=8), fails=st.booleans(), data=st.data()
    )
    def batch(self, bucket: int, numbers: list[int], fails: bool, data: st.DataObject) -> None:
        rows = [(self.encode(number), data.draw(self.drawn)) for number in numbers]
        if fails:
            with pytest.raises(Exception, match=r"(?i)bind|integer|type|bytes"):
                self.stores[0].batches[bucket]([*rows, (rows[0][0], object())])
        else:
            self.stores[0].batches[bucket](rows)
            self.model[bucket].update(rows)

    @rule(bucket=buckets, number=numbers)
    def get(self, bucket: int, number: int) -> None:
        key = self.encode(number)
        for store in self.stores:
            assert store.gets[bucket]((key,)) == self.model[bucket].get(key)

    @rule(bucket=buckets, first=numbers, second=numbers)
    def pair(self, bucket: int, first: int, second: int) -> None:
        keys = self.encode(first), self.encode(second)
        rows = self.model[bucket]
        assert dict(self.stores[-1].pairs[bucket](keys)) == {key: rows[key] for key in keys if key in rows}

    @rule(bucket=buckets, counter=st.integers(0, COUNTERS - 1), which=st.integers(0, 1))
    def update(self, bucket: int, counter: int, which: int) -> None:
        self.stores[which % len(self.stores)].updates[bucket]((counter,))
        self.counters[bucket][counter] += 1

    @rule()
    def reopen(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def teardown(self) -> None:
        if not hasattr(self, "stores"):
            return
        self.close()
        buckets = range(BUCKETS)
        try:
            assert [dict(self.table.rows(bucket)) for bucket in buckets] == self.model
            assert [dict(self.table.counters(bucket)) for bucket in buckets] == self.counters
            check = self.place.integrity("quick", nothing)
            assert check is None if serves(self.case.driver) else check and check.status == "ok"
        finally:
            self.table.release()
            self.place.discard()


def check_store(case: Case, workers: Sequence[int], folder: Path) -> None:
    """Compare the stores of these workers with a dict, in many subfolders of `folder`.

    With several workers, the target must allow several connections to a bucket.
    """

    class OwnMachine(Machine):
        pass

    OwnMachine.case, OwnMachine.workers = case, workers
    OwnMachine.folders = (folder / str(number) for number in itertools.count())
    run_state_machine_as_test(
        OwnMachine, settings=settings(max_examples=examples(0.15), stateful_step_count=30)
    )
