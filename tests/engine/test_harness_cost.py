"""Cost of the harness without a database, and cost of a binding's cheapest call."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqlstress.engine import harness_cost
from sqlstress.engine.harness_cost import ROUND_NS, ROUNDS, bare_call_ns, harness_ns
from sqlstress.errors import Interrupted
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case
from sqlstress.targets import open_place
from sqlstress.targets.dry import DryPlace
from tests.pulses import Pulses, nothing


@pytest.mark.parametrize(
    "case",
    [
        Case(concurrency=8, spec=Load(key_space=100)),
        Case(driver="apsw", buckets=3, spec=Load(key_space=100, batch=4, update_ratio=0.2)),
    ],
    ids=["one file", "batches over three"],
)
def test_harness_cost_is_positive_for_every_case(case: Case) -> None:
    cost = harness_ns(case, {}, nothing)
    assert cost is not None
    assert 0 < cost < 1_000_000


def test_harness_cost_is_measured_again_without_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter([None, None, 250.0])
    monkeypatch.setattr(harness_cost, "_cost_ns", lambda source: next(turns))
    assert harness_ns(Case(spec=Load(key_space=100)), {}, nothing) == 250.0


def test_published_script_has_no_harness_cost() -> None:
    assert harness_ns(Case(workload="classic", ops=10), {}, nothing) is None


@pytest.mark.thorough
def test_harness_cost_stops_before_all_keys_are_assigned() -> None:
    with pytest.raises(Interrupted):
        harness_ns(Case(buckets=20, spec=Load(key_space=10**8)), {}, Pulses(stop_at=3))


SLOW_S = 0.001


class Slow(DryPlace):
    """A place whose bare call takes SLOW_S; every twentieth call takes ten times as long."""

    calls = 0
    closed = False

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        def call() -> None:
            self.calls += 1
            time.sleep(SLOW_S * (10 if self.calls % 20 == 0 else 1))

        yield call
        self.closed = True


def test_bare_call_cost_is_a_median_and_the_connection_is_closed() -> None:
    place, pulses = Slow(Case(), Path()), list[None]()
    cost_ns = bare_call_ns(place, lambda: pulses.append(None))
    assert 1e9 * SLOW_S <= cost_ns < 5e9 * SLOW_S
    assert place.closed and len(pulses) == ROUNDS
    assert place.calls <= 20 + ROUNDS * ROUND_NS / 1e9 / SLOW_S


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_every_driver_has_a_bare_call_that_leaves_the_data_alone(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    place = open_place(Case(driver=driver, spec=Load(loop="python")), tmp_path)
    table = place.table("int", 8, 0)
    assert table
    table.create(lambda: None)
    schema = list(place.schema())
    assert 0 < bare_call_ns(place, lambda: None) < 1e9
    assert list(place.schema()) == schema
    table.release()
    place.discard()
    assert list(tmp_path.iterdir()) == []
