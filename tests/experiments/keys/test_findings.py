"""Findings on primary keys: the recommended types and their costs."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from sqlstress.analysis.group import ERROR, group_runs
from sqlstress.experiments.classics.keys_show import SPACE, space_figure
from sqlstress.experiments.classics.spec import ID_TYPES
from sqlstress.report import Check, Run, Space, TreeSpace, Verdict
from tests.example_keys import keys_report, run
from tests.several import facts, findings, noisy, sentences, several

WRONG = Verdict((Check("picks", "failed", 5, 1, ("user 1's pick of item 2 is gone",)),))


def advice(*runs: Run, noise: float | None = 0.01) -> dict[str, Mapping[str, Any]]:
    """Return the facts of the recommended type, by schema."""
    return {each.facts["schema"]: each.facts for each in findings(*runs, noise=noise)["id-type"]}


def advice_on_types(noise: float = 0.01, **seconds: float) -> Mapping[str, Any]:
    """Return the facts of the recommended type among types with these times over five passes."""
    runs = [run("id-rowid", name.replace("_", "-"), took) for name, took in seconds.items()]
    return advice(*runs, noise=noise)["id-rowid"]


def type_of(facts: Mapping[str, Any]) -> str | None:
    """Return the chosen type; None if uuid4 may stay."""
    chosen: str | None = facts["chosen"]
    return chosen


def test_example_recommends_a_type_per_schema_with_its_cost() -> None:
    runs = keys_report(("id-rowid", "no-key")).runs
    known = advice(*runs)
    assert {schema: (type_of(each), bool(each["int_cost"])) for schema, each in known.items()} == {
        "id-rowid": ("uuid7", True),
        "no-key": ("uuid7", True),
    }
    cost = known["id-rowid"]["int_cost"]
    assert cost.ratio.estimate == pytest.approx(2.1 / 8.4)
    assert cost.file == pytest.approx(0.35, abs=0.005)
    assert "cannot-tell" not in facts(*runs, noise=0.01)


def test_noisy_types_are_chosen_by_stable_traits_and_listed_as_unclear() -> None:
    runs = keys_report(("no-key",)).runs
    known = advice(*runs, noise=0.1)["no-key"]
    assert (known["chosen"], known["dated"]) == ("uuid7", True)
    assert known["cost"].unclear
    assert known["unclear"] == ("ulid-monotonic", "ulid")
    assert facts(*runs, noise=0.1)["cannot-tell"]["noise"]
    for seed in range(40):
        noisy_ones = [several(each, 0.08, seed=str(seed)) for each in runs]
        assert type_of(advice(*noisy_ones, noise=None)["no-key"]) == "uuid7"


def test_equal_types_are_rarely_reported_as_different() -> None:
    draw, wrong, count = Random(5), 0, 60
    for _ in range(count):
        runs = [noisy(run("no-key", id_type, 3.0), 0.15, draw) for id_type in ID_TYPES]
        wrong += " of uuid4's time" in sentences(*runs)["id-type"]
    assert wrong <= 2 * ERROR * count


def test_standard_type_is_recommended_unless_another_is_clearly_better() -> None:
    assert (
        type_of(advice_on_types(uuid4=10.0, ulid=5.0, ulid_monotonic=5.1, uuid7=5.1, noise=0.002)) == "uuid7"
    )
    assert type_of(advice_on_types(uuid4=10.0, ulid=5.0, uuid7=6.9)) == "ulid"
    assert type_of(advice_on_types(uuid4=5.0, ulid=7.0, uuid7=7.0)) is None
    assert not advice_on_types(int=9.0, uuid4=6.0, ulid=5.0)["int_cost"]
    large = run("no-key", "uuid7", 3.0, space=Space(10**9, 4096, 1, 0, ()))
    known = advice(large, *(run("no-key", name, 3.0) for name in ("uuid4", "ulid")))["no-key"]
    assert (type_of(known), known["dated"]) == ("ulid", True)


def test_types_are_not_compared_without_uuid4_and_another_type() -> None:
    assert "id-type" not in facts(run("no-key", "int"), run("no-key", "uuid7"), noise=0.01)
    assert "id-type" not in facts(run("no-key", "uuid4"), run("id-rowid", "uuid7"), noise=0.01)


def test_cases_with_the_most_processes_are_compared() -> None:
    runs = [
        run("id-rowid", "uuid4", 8.0),
        run("id-rowid", "ulid", 4.0),
        *(run("id-rowid", id_type, 1.0, concurrency=1) for id_type in ("uuid4", "ulid")),
    ]
    cost = advice(*runs)["id-rowid"]["cost"]
    assert cost.ratio.estimate == pytest.approx(0.5)


def test_wrong_data_is_reported_and_excluded_from_conclusions() -> None:
    known = sentences(run("no-key", "uuid4"), run("no-key", "ulid", verdict=WRONG))
    assert "picks, 1 of 5 wrong (user 1's pick of item 2 is gone)" in known["data-wrong"]
    assert "id-type" not in known
    assert len(group_runs((run("no-key", "uuid4"), run("no-key", "ulid", users=2000, picks=200)))) == 2


def test_missing_space_leaves_only_times_in_the_advice() -> None:
    runs = [run("no-key", id_type, space=None) for id_type in ("int", "uuid4", "uuid7")]
    runs.append(run("id-rowid", "uuid4"))
    known = advice(*runs)["no-key"]
    assert (known["int_cost"].file, known["cost"].file) == (None, None)
    assert sentences(*runs).keys() == {"cannot-tell"}


@pytest.mark.parametrize("name", SPACE)
@pytest.mark.parametrize(
    "space",
    [
        Space(0, 4096, 0, 0, ()),
        Space(0, 4096, 1, 0, (TreeSpace("other", "other", False, 0, 0, 0, 0, 1, 0, 0),)),
        Space(0, 0, 0, 0, (TreeSpace("picks", "picks", False, 0, 0, 0, 0, 0, 0, 0),)),
        None,
    ],
    ids=["nothing", "no picks", "no pages", "not measured"],
)
def test_inconsistent_space_has_no_figure(space: Space | None, name: str) -> None:
    assert not space_figure(space, name)
