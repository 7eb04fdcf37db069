"""Labels of cases, their experiments, and their plain copies."""

import pickle
from dataclasses import asdict, is_dataclass
from math import isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.pool import to_namespace
from sqlstress.experiment import case_label, experiment_of, has_window, unit_of
from sqlstress.experiments.classics.spec import PHASES, Cycling, Method, Picks
from sqlstress.report.case import Case, Settings

DELETE, EVERY_50 = Settings(journal_mode="delete"), Settings(wal_autocheckpoint=50)
LABELS = [
    Case(),
    Case(workload="classic", buckets=20, concurrency=3),
    Case(workload="methods", driver="apsw", spec=Method("insert", "JSON", True, 10_000, 2.6)),
    Case(workload="methods", concurrency=2, settings=DELETE, spec=Method("query", "ROW", False, 500, 10.0)),
    Case(workload="keys", spec=Picks("no-key", "ulid")),
    Case(workload="keys", spec=Picks("id-rowid", "uuid7"), concurrency=4),
    Case(workload="cycles", spec=Cycling(), settings=EVERY_50, concurrency=2),
]


def test_case_has_a_short_label() -> None:
    assert [f"{experiment_of(case).table()}: {case_label(case)}" for case in LABELS] == [
        "kv: 1 bucket, 1 process",
        "kv: 20 buckets, 3 processes",
        "methods: insert 10,000 by JSON + WAL + TSC, apsw, 1 process",
        "methods: query 500 by ROW, sqlite3, 2 processes",
        "keys: no-key, ulid, 1 process",
        "keys: id-rowid, uuid7, 4 processes",
        "cycles: wal-50, 2 processes",
    ]


@pytest.mark.parametrize(
    ("workload", "unit"), [("kv", "transaction"), ("classic", "pair"), ("cycles", "statement")]
)
def test_unit_of_a_case_depends_on_its_experiment(workload: str, unit: str) -> None:
    assert unit_of(Case(workload=workload)) == unit


def test_only_a_key_value_case_without_a_count_has_a_window() -> None:
    assert has_window(Case())
    assert not any(has_window(case) for case in (Case(ops=5), Case(workload="keys", spec=Picks("x", "int"))))


def test_plain_case_equals_the_case_without_our_classes() -> None:
    picks, settings = Picks("id-rowid", "int"), Settings(pragmas=(("temp_store", "memory"),))
    case = Case(workload="keys", settings=settings, spec=picks)
    read = to_namespace(case)
    assert not is_dataclass(read) and not is_dataclass(read.settings) and not is_dataclass(read.spec)
    assert vars(read.settings) == asdict(case.settings)
    assert vars(read.spec) == {**asdict(picks), "own_id": True, "most_picks": 110}
    assert (read.workload, case_label(read), read.driver) == (case.workload, case_label(case), case.driver)
    assert b"sqlstress" not in pickle.dumps(to_namespace(Case()))


@given(st.integers(1, 20_000))
def test_pairs_connect_two_sets_of_nearly_equal_size(scale: int) -> None:
    first, second = Method("query", "SPC", False, scale, 10.0).sets
    assert first * second == scale
    assert first <= second
    assert not any(scale % size == 0 for size in range(first + 1, isqrt(scale) + 1))


def test_rows_of_a_method_are_samples_or_pairs() -> None:
    rows = {phase: Method(phase, "1b1", False, 50, 1.0).rows for phase in PHASES}
    assert rows == {"insert": 50, "allocate": 1225, "query": 50}
