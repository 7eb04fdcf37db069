"""Traits: every setting of a case is listed under the name of its option."""

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
    """Return the names of the traits in which a case differs from the default one."""
    default_traits, case_traits = (experiment_of(compared).traits(compared) for compared in (CASE, case))
    assert default_traits.keys() == case_traits.keys()
    return {name for name in default_traits if default_traits[name] != case_traits[name]}


@pytest.mark.parametrize("field", [field.name for field in fields(Settings)])
def test_every_setting_is_a_single_trait(field: str) -> None:
    assert len(differing(replace(CASE, settings=replace(CASE.settings, **{field: OTHER[field]})))) == 1


@pytest.mark.parametrize("field", [field.name for field in fields(Load)])
def test_every_field_of_a_load_and_the_driver_are_single_traits(field: str) -> None:
    assert len(differing(replace(CASE, spec=replace(CASE.spec, **{field: OTHERS[field]})))) == 1
    assert differing(replace(CASE, driver="apsw")) == {"driver"}


def test_autocheckpoint_implied_by_a_checkpointer_is_no_trait() -> None:
    checkpointing = Checkpointing(mode="passive", interval_s=0.5, pinned_reader=True)
    settings = replace(CASE.settings, wal_autocheckpoint=0)
    case = replace(CASE, settings=settings, spec=replace(CASE.spec, checkpointing=checkpointing))
    assert differing(case) == {"checkpointer"}
    assert experiment_of(case).traits(case)["checkpointer"] == "passive every 500ms + pinned reader"


def test_trait_values_are_written_like_options() -> None:
    assert traits(Case())["busy-timeout"] == "60s"
    texts = [words(value) for value in (None, (), True, False, 0.5, "wal", (("a", "1"), ("b", "2")))]
    assert texts == ["default", "default", "on", "off", "0.5", "wal", "a=1, b=2"]
