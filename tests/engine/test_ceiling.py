"""The harness's own cost."""

from __future__ import annotations

import pytest

from sqlstress.engine import harness_cost
from sqlstress.engine.harness_cost import harness_ns
from sqlstress.errors import Interrupted
from sqlstress.experiments.kv.experiment import Load
from sqlstress.report.case import Case
from tests.pulses import Pulses, nothing


@pytest.mark.parametrize(
    "case",
    [
        Case(concurrency=8, spec=Load(key_space=100)),
        Case(driver="apsw", buckets=3, spec=Load(key_space=100, batch=4, update_ratio=0.2)),
    ],
    ids=["one file", "batches over three"],
)
def test_the_harness_costs_something_whatever_the_case(case: Case) -> None:
    cost = harness_ns(case, nothing)
    assert cost is not None
    assert 0 < cost < 1_000_000


def test_a_process_that_got_no_turn_in_the_window_measures_again(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter([None, None, 250.0])
    monkeypatch.setattr(harness_cost, "_cost_ns", lambda source: next(turns))
    assert harness_ns(Case(spec=Load(key_space=100)), nothing) == 250.0


def test_a_whole_script_has_no_cost_of_one_operation() -> None:
    assert harness_ns(Case(workload="classic", ops=10), nothing) is None


@pytest.mark.thorough
def test_who_stops_it_need_not_wait_until_every_key_has_its_file() -> None:
    with pytest.raises(Interrupted):
        harness_ns(Case(buckets=20, spec=Load(key_space=10**8)), Pulses(stop_at=3))
