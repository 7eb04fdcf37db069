"""What a case is called, and which experiment it belongs to."""

from __future__ import annotations

import pytest

from sqlstress.case import Case, Cycling, Method, Picks, Settings


@pytest.mark.parametrize(
    ("case", "experiment", "label"),
    [
        (Case(), "kv", "1 file, 1 process"),
        (Case(workload="classic", buckets=20, concurrency=3), "kv", "20 files, 3 processes"),
        (
            Case(workload="methods", driver="apsw", method=Method("insert", "JSON", True, 10_000, 2.6)),
            "methods",
            "insert 10,000 by JSON + WAL + TSC, apsw, 1 process",
        ),
        (Case(workload="keys", picks=Picks("own-rowid", "ulid")), "keys", "own-rowid, ulid, 1 process"),
        (
            Case(workload="cycles", cycling=Cycling(), settings=Settings(journal_mode="delete")),
            "cycles",
            "delete, transaction none, 1 process",
        ),
    ],
)
def test_a_case_is_named_in_a_few_words(case: Case, experiment: str, label: str) -> None:
    assert (case.experiment, case.label) == (experiment, label)


def test_only_a_key_value_case_without_a_count_has_a_window() -> None:
    assert Case().has_window
    assert not any(case.has_window for case in (Case(ops=5), Case(workload="keys", picks=Picks("x", "int"))))
