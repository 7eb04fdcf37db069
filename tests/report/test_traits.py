"""Traits: every setting of a case is told, in the words of its option."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from sqlstress.experiment import experiment_of
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report.case import Case, Settings, traits, words
from tests.loads import OTHERS

CASE = Case()
OTHER: dict[str, Any] = {
    "journal_mode": "delete",
    "synchronous": None,
    "fullfsync": True,
    "wal_autocheckpoint": 20,
    "page_size": 512,
    "cache_size": -1,
    "mmap_size": 1,
    "pragmas": (("foreign_keys", "on"),),
    "busy_timeout_ms": 1,
}


def differing(case: Case) -> set[str]:
    """Return in which traits a case differs from the usual one."""
    one, other = (experiment_of(each).traits(each) for each in (CASE, case))
    assert one.keys() == other.keys()
    return {name for name in one if one[name] != other[name]}


@pytest.mark.parametrize("field", [field.name for field in fields(Settings)])
def test_a_setting_is_one_trait(field: str) -> None:
    assert len(differing(replace(CASE, settings=replace(CASE.settings, **{field: OTHER[field]})))) == 1


@pytest.mark.parametrize("field", [field.name for field in fields(Load)])
def test_what_a_load_has_is_one_trait_and_so_is_the_driver(field: str) -> None:
    assert len(differing(replace(CASE, spec=replace(CASE.spec, **{field: OTHERS[field]})))) == 1
    assert differing(replace(CASE, driver="apsw")) == {"driver"}


def test_an_autocheckpoint_that_follows_from_a_checkpointer_is_none() -> None:
    beside = Checkpointing(mode="passive", interval_s=0.5, pinned_reader=True)
    settings = replace(CASE.settings, wal_autocheckpoint=0)
    case = replace(CASE, settings=settings, spec=replace(CASE.spec, checkpointing=beside))
    assert differing(case) == {"checkpointer"}
    assert experiment_of(case).traits(case)["checkpointer"] == "passive every 500ms + pinned reader"


def test_values_are_told_as_they_are_given() -> None:
    assert traits(Case())["busy-timeout"] == "60s"
    told = [words(value) for value in (None, (), True, False, 0.5, "wal", (("a", "1"), ("b", "2")))]
    assert told == ["default", "default", "on", "off", "0.5", "wal", "a=1, b=2"]
