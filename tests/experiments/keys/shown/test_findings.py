"""What is said of primary keys: which to take, and what they cost."""

from __future__ import annotations

import re
from random import Random

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.group import ERROR, group_runs
from sqlstress.experiments.keys.experiment import ID_TYPES
from sqlstress.experiments.keys.key_findings import SPACE, space_figure
from sqlstress.report import Check, Run, Space, TreeSpace, Verdict
from sqlstress.show.phrases import phrase
from tests.example_keys import PAGES, keys_report, run
from tests.several import noisy, several

WRONG = Verdict((Check("picks", "failed", 5, 1, ("user 1's pick of item 2 is gone",)),))


def said(*runs: Run) -> dict[str, list[str]]:
    """Return what is said of these runs, which are one group, by code."""
    (group,) = group_runs(runs)
    found: dict[str, list[str]] = {}
    for finding in advise_group(group):
        found.setdefault(finding.code, []).append(phrase(finding))
    return found


def of_types(schema: str = "id-rowid", noise: float = 0.01, **seconds: float) -> list[str]:
    """Return what is said of types with these times over five passes."""
    runs = [run(schema, name.replace("_", "-"), took) for name, took in seconds.items()]
    return said(*(several(one, noise) for one in runs))["id-type"]


def example(*schemas: str, noise: float = 0.01) -> dict[str, list[str]]:
    """Return what is said of the example over five passes."""
    return said(*(several(one, noise) for one in keys_report(schemas).runs))


def test_the_example_says_which_type_to_take_in_each_schema_and_what_it_costs() -> None:
    found = example("id-rowid", "no-key")
    assert found["id-type"] == [
        "id-rowid: take int where one database gives all ids (0.24 to 0.26 of uuid4's time, 0.35 of its "
        "file), else uuid7 (0.58 to 0.64 of uuid4's time, 1.0 of its file).",
        "no-key: take int where one database gives all ids (0.59 to 0.63 of uuid4's time, 0.49 of its file), "
        "else uuid7 (0.88 to 0.93 of uuid4's time, 1.0 of its file).",
    ]
    assert found["schema"] == [
        "With uuid7, quickest: no-key (2.80 s); smallest: no-key (12.1 MB). "
        "Only pair-norowid and pair-rowid keep a pick from being there twice: measure them with --schema."
    ]
    assert "cannot-tell" not in found


def test_of_single_trials_only_what_was_measured_is_told_and_what_it_is_worth() -> None:
    found = said(*keys_report().runs)
    assert found["id-type-least"] == [
        "id-rowid: int took least time (2.10 s) and least space (0.35 of uuid4's); "
        "no-key: int took least time (1.90 s) and least space (0.49 of uuid4's)."
    ]
    assert found["schema"][0].startswith("With uuid7, no-key took least time (2.80 s); smallest: no-key (")
    assert found["cannot-tell"] == ["So few trials tell no difference from noise: measure with --repeat 5."]
    assert not any("take " in text for texts in found.values() for text in texts)


def test_noise_recommends_by_what_does_not_change_and_says_what_cannot_be_told() -> None:
    found = example("no-key", noise=0.1)
    assert found["id-type"] == [
        "no-key: take int where one database gives all ids (0.45 to 0.83 of uuid4's time, 0.49 of its file), "
        "else uuid7, which says when it was made (its time can't be told from uuid4's, 1.0 of its file); "
        "whether ulid-monotonic or ulid is quicker can't be told."
    ]
    (why,) = found["cannot-tell"]
    assert re.fullmatch(
        r"Why something can't be told: 5 passes are too noisy. About \d+ would tell 10% \(--repeat \d+\).",
        why,
    )


def test_no_two_of_many_noisy_runs_advise_different_types() -> None:
    advised = set()
    for seed in range(40):
        runs = [several(one, 0.08, seed=str(seed)) for one in keys_report(("no-key",)).runs]
        (text,) = said(*runs)["id-type"]
        advised.add(re.search(r"else ([a-z0-9-]+)", text)[1])  # type: ignore[index]
    assert advised == {"uuid7"}


def test_of_types_that_are_equal_hardly_any_report_says_otherwise() -> None:
    draw, wrong, count = Random(5), 0, 60
    for _ in range(count):
        runs = [noisy(run("no-key", id_type, 3.0), 0.15, draw) for id_type in ID_TYPES]
        wrong += any(" of uuid4's time" in text for text in said(*runs)["id-type"])
    assert wrong <= 2 * ERROR * count


def test_of_types_that_are_as_good_the_standard_one_is_advised() -> None:
    (text,) = of_types(uuid4=10.0, ulid=5.0, ulid_monotonic=5.1, uuid7=5.1, noise=0.002)
    assert text == "id-rowid: take uuid7 (0.50 to 0.52 of uuid4's time, 1.0 of its file)."
    (text,) = of_types(uuid4=10.0, ulid=5.0, uuid7=6.9)
    assert text.startswith("id-rowid: take ulid (0.48 to 0.52 of")


def test_a_type_that_takes_clearly_more_space_is_not_advised() -> None:
    large = several(run("no-key", "uuid7", 3.0, space=Space(10**9, 4096, 1, 0, ())))
    (text,) = said(large, *(several(run("no-key", name, 3.0)) for name in ("uuid4", "ulid")))["id-type"]
    assert text.startswith("no-key: take ulid, which says when it was made (about uuid4's time, 1.0")


def test_where_nothing_gains_uuid4_may_stay() -> None:
    (text,) = of_types(uuid4=5.0, ulid=7.0, uuid7=7.0)
    assert text == "id-rowid: take uuid4, beside which no other gains time or space."


def test_integers_that_are_slower_are_not_advised() -> None:
    (text,) = of_types(int=9.0, uuid4=6.0, ulid=5.0)
    assert "int" not in text


def test_without_uuid4_or_anything_beside_it_nothing_is_said_of_types() -> None:
    assert "id-type" not in said(run("no-key", "int"), run("no-key", "uuid7"))
    assert "id-type" not in said(run("no-key", "uuid4"), run("id-rowid", "uuid7"))


def test_the_largest_number_of_processes_and_ids_of_python_count() -> None:
    runs = [
        run("id-rowid", "uuid4", 8.0),
        run("id-rowid", "ulid", 4.0),
        run("id-rowid", "ulid", 1.0, made_by="sqlite"),
        *(run("id-rowid", id_type, 1.0, concurrency=1) for id_type in ("uuid4", "ulid")),
    ]
    (text,) = said(*map(several, runs))["id-type"]
    assert text.startswith("id-rowid: take ulid (0.48 to 0.52 of uuid4's time")


def test_what_it_costs_that_no_pick_can_be_there_twice_is_said() -> None:
    (text,) = example("no-key", "pair-norowid", "pair-rowid")["schema"]
    assert text == (
        "With uuid7, quickest: no-key (2.80 s); smallest: no-key (12.1 MB). "
        "Only pair-norowid and pair-rowid keep a pick from being there twice: "
        "pair-norowid 1.3 times and pair-rowid 1.4 times the smallest file."
    )
    (text,) = example("id-rowid", "pair-rowid")["schema"]
    assert text == (
        "With uuid7, quickest: pair-rowid (3.40 s); smallest: id-rowid and pair-rowid (about 16.0 MB). "
        "Only pair-rowid keeps a pick from being there twice."
    )


def test_schemas_that_noise_hides_are_not_ranked() -> None:
    (text,) = example("no-key", "pair-rowid", noise=0.2)["schema"]
    assert text.startswith(
        "With uuid7, quickest: no-key and pair-rowid (about 2.80 s), which can't be told apart;"
    )


def test_one_schema_is_compared_with_nothing() -> None:
    assert "schema" not in said(*keys_report(("no-key",)).runs)


def made_inside(inside_s: float, noise: float = 0.005, count: int = 5) -> str:
    """Return what is said of ids that take 5 s made by Python, and so long inside SQLite."""
    runs = [
        run("id-rowid", id_type, took, made_by=maker)
        for id_type, maker, took in [
            ("ulid", "python", 5.0),
            ("ulid", "sqlite", inside_s),
            ("uuid7", "python", 5.0),
            ("uuid7", "sqlite", inside_s),
            ("int", "python", 1.0),
            ("int", "sqlite", 9.0),
        ]
    ]
    (text,) = said(*(several(one, noise, count) for one in runs))["made-inside"]
    return text.removeprefix("With ids made inside SQLite, by a function of Python, ")


def test_ids_made_inside_sqlite_are_compared_with_those_of_python() -> None:
    assert re.fullmatch(r"it took 1\.5 times \(1\.[45]\d* to 1\.[56]\d*\) as long\.", made_inside(7.5))
    assert made_inside(5.0) == "it took about as long."
    assert made_inside(5.5, noise=0.2).startswith("whether it takes longer can't be told (0.")
    assert made_inside(6.0, count=1) == "it took 1.2 times as long."


def test_wrong_data_is_told_and_nothing_is_concluded_from_it() -> None:
    found = said(run("no-key", "uuid4"), run("no-key", "ulid", verdict=WRONG))
    assert found["data-wrong"] == [
        "FAILED at no-key, ulid, 4 processes: picks, 1 of 5 wrong (user 1's pick of item 2 is gone)."
    ]
    assert "id-type" not in found


def test_loads_of_different_sizes_are_not_compared() -> None:
    runs = (run("no-key", "uuid4"), run("no-key", "ulid", users=2000, picks=200))
    assert len(group_runs(runs)) == 2


def test_without_space_only_times_are_told() -> None:
    runs = [run("no-key", id_type, space=None) for id_type in ("int", "uuid4", "uuid7")]
    runs.append(run("id-rowid", "uuid4"))
    assert said(*map(several, runs))["id-type"] == [
        "no-key: take int where one database gives all ids (0.59 to 0.63 of uuid4's time), "
        "else uuid7 (0.87 to 0.93 of uuid4's time)."
    ]
    assert said(*runs)["id-type-least"] == ["no-key: int took least time (1.90 s)."]


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
def test_a_space_that_contradicts_itself_has_no_figure(space: Space | None, name: str) -> None:
    assert not space_figure(space, name)


def test_the_figures_of_the_space_are_those_of_the_table_of_picks() -> None:
    trial = run("no-key", "uuid4").trials[0]
    table, *indices = PAGES["no-key"][1]
    whole = table + sum(indices) + 200
    assert space_figure(trial.space, "file") == whole * 4096
    assert space_figure(trial.space, "table's share") == pytest.approx(table / whole)
    assert space_figure(trial.space, "indices' share") == pytest.approx(sum(indices) / whole)
