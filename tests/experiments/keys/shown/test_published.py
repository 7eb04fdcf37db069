"""The published figures stand beside those of a report that has the same ones."""

from __future__ import annotations

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.keys.experiment import ID_TYPES, SCHEMAS
from sqlstress.experiments.keys.key_findings import PUBLISHED, beside_published
from sqlstress.report import Run
from tests.example_keys import keys_report, run


def here(*runs: Run) -> dict[tuple[object, ...], float]:
    (group,) = group_runs(runs)
    return {
        (one.published.figure, one.published.schema, one.published.id_type, one.published.beside): one.here
        for one in beside_published(group)
    }


def test_times_and_ratios_of_the_same_cases_are_compared() -> None:
    found = here(*keys_report(("id-rowid", "no-key", "pair-norowid")).runs)
    assert found["time", "id-rowid", "ulid", None] == 6.0
    assert found["time", "id-rowid", "ulid", ("id-rowid", "uuid4")] == pytest.approx(6.0 / 8.4)
    assert found["file", "no-key", "ulid", ("pair-norowid", "ulid")] == pytest.approx(2956 / 3860)
    assert found["indices' share", "no-key", "ulid", None] == pytest.approx(1401 / 2956)
    assert not [place for place in found if "id-norowid" in place]


def test_what_was_not_measured_is_left_out() -> None:
    assert here(run("no-key", "int"), run("id-rowid", "uuid7")) == {}
    assert set(here(run("no-key", "ulid", space=None))) == {("time", "no-key", "ulid", None)}


@pytest.mark.parametrize("fields", [{"users": 10}, {"picks": 50}, {"items": 20_000}])
def test_another_load_is_compared_with_nothing(fields: dict[str, int]) -> None:
    assert here(run("no-key", "ulid", **fields)) == {}


def test_the_larger_load_has_published_figures_of_its_own() -> None:
    found = here(run("no-key", "ulid", 20.0, users=2000, picks=200))
    assert found["time", "no-key", "ulid", None] == 20.0
    assert {place[0] for place in found} == {"time", "rows/s"}


def test_of_several_concurrencies_that_of_the_text_is_compared() -> None:
    runs = [run("no-key", "ulid", float(processes), concurrency=processes) for processes in (1, 4, 8)]
    assert here(*runs)["time", "no-key", "ulid", None] == 4.0
    assert here(*runs[::2])["time", "no-key", "ulid", None] == 1.0


def test_every_published_figure_names_a_case_that_can_be_measured() -> None:
    for one in PUBLISHED:
        places = [(one.schema, one.id_type), *([one.beside] if one.beside else [])]
        assert all(schema in SCHEMAS and id_type in ID_TYPES for schema, id_type in places)
