"""A store does what a dict does, whatever is asked of it in whatever order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.experiment import KEY_TYPES
from sqlstress.experiments.kv.keys import encoder
from sqlstress.experiments.kv.partition import bucket_of
from sqlstress.report.case import BEGINS, BUSY_POLICIES, Case
from tests.drawing import examples
from tests.targets.filled import contents, create, open_store


class Machine(RuleBasedStateMachine):
    """Does the same to a store and to a dict."""

    case: Case
    folders: Iterator[Path]
    numbers = st.integers(0, 24)
    integers = st.integers(-(2**63), 2**63 - 1)
    values = st.one_of(integers, st.binary(max_size=40))

    @initialize(key_type=st.sampled_from(KEY_TYPES), begin=st.sampled_from(BEGINS))
    def fill(self, key_type: str, begin: str) -> None:
        self.folder = next(self.folders)
        self.folder.mkdir()
        # A value size above 8 makes a column that takes any value as it is.
        load = replace(self.case.spec, key_type=key_type, value_size=16, begin=begin)
        self.own = replace(self.case, spec=load)
        self.encode = encoder(key_type)
        self.model: dict[Any, Any] = {self.encode(number): number for number in range(12)}
        self.counters = [dict.fromkeys(range(COUNTERS), 0) for _ in range(self.case.buckets)]
        create(self.own, self.folder, self.model)
        self.store = open_store(self.own, self.folder)

    def bucket(self, key: Any) -> int:
        return bucket_of(key, self.case.buckets)

    @rule(number=numbers, value=values)
    def put(self, number: int, value: Any) -> None:
        key = self.encode(number)
        self.store.puts[self.bucket(key)]((key, value))
        self.model[key] = value

    @rule(rows=st.lists(st.tuples(numbers, values), min_size=1, max_size=8), fails=st.booleans())
    def batch(self, rows: list[tuple[int, Any]], fails: bool) -> None:
        bucket = self.bucket(self.encode(rows[0][0]))
        encoded = [(self.encode(number), value) for number, value in rows]
        encoded = [row for row in encoded if self.bucket(row[0]) == bucket]
        if fails:
            with pytest.raises(Exception, match=r"(?i)bind|type"):
                self.store.batches[bucket]([*encoded, (encoded[0][0], object())])
        else:
            self.store.batches[bucket](encoded)
            self.model.update(encoded)

    @rule(number=numbers)
    def get(self, number: int) -> None:
        key = self.encode(number)
        assert self.store.gets[self.bucket(key)]((key,)) == self.model.get(key)

    @rule(one=numbers, other=numbers)
    def pair(self, one: int, other: int) -> None:
        keys = (self.encode(one), self.encode(other))
        if self.bucket(keys[0]) == self.bucket(keys[1]):
            rows = self.store.pairs[self.bucket(keys[0])](keys)
            assert dict(rows) == {key: self.model[key] for key in keys if key in self.model}

    @rule(number=numbers, counter=st.integers(0, COUNTERS - 1))
    def update(self, number: int, counter: int) -> None:
        bucket = self.bucket(self.encode(number))
        self.store.updates[bucket]((counter,))
        self.counters[bucket][counter] += 1

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = open_store(self.own, self.folder)

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        self.store.close()
        buckets: list[dict[Any, Any]] = [{} for _ in range(self.case.buckets)]
        for key, value in self.model.items():
            buckets[self.bucket(key)][key] = value
        assert contents(self.own, self.folder) == buckets
        assert contents(self.own, self.folder, "SELECT id, n FROM counter") == self.counters


@pytest.mark.parametrize("busy", BUSY_POLICIES)
def test_a_store_behaves_like_a_dict(case: Case, busy: str, tmp_path: Path) -> None:
    class OwnMachine(Machine):
        pass

    OwnMachine.case = replace(case, settings=replace(case.settings, busy=busy))
    OwnMachine.folders = (tmp_path / str(number) for number in itertools.count())
    run_state_machine_as_test(
        OwnMachine, settings=settings(max_examples=examples(0.15), stateful_step_count=30)
    )
