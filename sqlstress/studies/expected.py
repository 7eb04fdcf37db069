"""A guess of how long a case takes, before anything of it has been measured."""

from __future__ import annotations

from collections.abc import Callable

from sqlstress.report.case import Case
from sqlstress.report.parts import Cycling

TRIAL_S = 0.7
WORKER_S = 0.05
OPERATION_S = 150e-6
COMMIT_S = 250e-6
STATEMENT_S = 10e-6
KEY_S = 3e-6
BUCKET_S = 5e-3
ROW_COMMIT_S, ROW_S, IN_BULK_S = 5e-3, 1e-4, 5e-6
"""A row that is a transaction, a row that is a statement, and a row among others in one statement."""
PICK_S = 50e-6


def expected_s(case: Case) -> float:
    """Return a guess of how long a case takes, in seconds; a Pace corrects it as cases end."""
    around = TRIAL_S + WORKER_S * case.concurrency
    return case.repeat * (around + EXPECTED[case.experiment](case))


def _key_value_s(case: Case) -> float:
    load = case.duration_s + case.warmup_s
    if case.ops is not None:
        load = case.ops * case.concurrency * OPERATION_S
    # The published script preloads nothing.
    keys = 0 if case.unit == "pair" else case.load.key_space
    return load + KEY_S * keys + BUCKET_S * case.buckets


def _method_s(case: Case) -> float:
    method = case.method
    assert method
    row_s = IN_BULK_S if method.name != "1b1" else ROW_S
    if method.name == "1b1" and method.phase != "query" and not method.transaction:
        row_s = ROW_COMMIT_S
    return min(method.timeout_s, row_s * method.rows) + IN_BULK_S * method.rows


def _keys_s(case: Case) -> float:
    assert case.picks is not None
    return PICK_S * case.picks.users * case.picks.picks


def _cycles_s(case: Case) -> float:
    work = case.cycling or Cycling()
    commits = {"none": work.cycles * (2 * work.rows + 1), "cycle": work.cycles}.get(work.transaction, 1)
    # A commit of a rollback journal waits for several syncs.
    commit_s = COMMIT_S if case.settings.journal_mode == "wal" else 5 * COMMIT_S
    load = case.concurrency * (commits * commit_s + work.cycles * (2 * work.rows + 1) * STATEMENT_S)
    return load if work.timeout_s is None else min(load, work.timeout_s)


EXPECTED: dict[str, Callable[[Case], float]] = {
    "kv": _key_value_s,
    "methods": _method_s,
    "keys": _keys_s,
    "cycles": _cycles_s,
}
"""Experiment → a guess of how long the work of one trial takes, in seconds."""
