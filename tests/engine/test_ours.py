"""Whose time is ours: what works for us is not said to be other programs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from sqlstress.engine.pool import ours
from sqlstress.machine.foreign_load import KEEPS_ACCOUNT, ChangingFamily, Family
from sqlstress.plan import cases_of
from sqlstress.report.case import Case


def only(workload: str, **given: Any) -> Case:
    return cases_of({"concurrency": 1, **given}, workload)[-1]


def elsewhere(dsn: str) -> Case:
    pytest.importorskip("psycopg")
    return only("kv", driver="psycopg", dsn=dsn, anyway=True)


def test_workers_that_start_nothing_are_looked_for_once() -> None:
    assert type(ours(only("kv"))) is Family


def test_programs_that_come_and_go_are_looked_for_each_time() -> None:
    case = only("exec", command=[sys.executable], alone=True)
    assert isinstance(ours(case), ChangingFamily if KEEPS_ACCOUNT else type(None))


def test_where_no_account_is_kept_of_them_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlstress.engine.pool.KEEPS_ACCOUNT", False)
    assert ours(only("exec", command=[sys.executable], alone=True)) is None


def test_a_users_server_on_this_machine_works_for_us_unseen() -> None:
    assert ours(elsewhere("postgresql://user@127.0.0.1/app")) is None
    assert ours(elsewhere("postgresql://user@db.example.org/app")) is not None
