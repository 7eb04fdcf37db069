"""The way from flags or a TOML file to Cases, and to the loop that drives them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.session import not_native
from sqlstress.errors import UsageError
from sqlstress.experiment import unit_of
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.options.option import options_of
from sqlstress.plan import MAX_CASES, cases_of, from_toml
from sqlstress.report import Report, from_json, to_json
from sqlstress.report.case import Arrivals, Case, Settings, words
from sqlstress.show.text import report_text
from sqlstress.studies.slices import check_loops
from sqlstress.targets import sqlite
from sqlstress.targets.sqlite.connections import native_unavailable
from tests.commands import by_name
from tests.drawing import CHARACTERS
from tests.example_report import assert_golden_texts
from tests.loads import OTHERS
from tests.options.test_options import anything
from tests.show.variants import EXAMPLE, with_case

WRITTEN: dict[str, list[Any]] = {
    **{option.name: [words(OTHERS[field])] for field, option in options_of(Load).items()},
    "concurrency": ["1-8", "4"],
    "buckets": ["1,20"],
    "duration": ["500ms"],
    "warmup": ["0"],
    "ops": ["100"],
    "rate": ["500", "1000-2000/500"],
    "arrival": ["even"],
    "latency-limit": ["50ms"],
    "repeat": ["3"],
    "read-ratio": ["1", "0.5", "0.25"],
    "update-ratio": ["1", "0.3"],
    "key-space": ["5", "1000"],
    "batch": ["2", "10"],
    "loop": ["native", "python"],
    "journal-mode": ["delete"],
    "synchronous": ["off"],
    "fullfsync": ["on"],
    "wal-autocheckpoint": ["0"],
    "page-size": ["8192"],
    "cache-size": ["-2000"],
    "mmap-size": ["0"],
    "pragma": [("temp_store=memory",), ("locking_mode=exclusive",)],
    "busy-timeout": ["5s"],
    "driver": ["apsw", "psycopg"],
    "dsn": ["postgresql://me@localhost/db"],
    "isolation": ["serializable"],
    "anyway": ["on"],
    "verify": ["none"],
    "max-failed": ["10%"],
    "checkpointer": ["restart"],
    "checkpoint-interval": ["1s"],
    "pinned-reader": ["on"],
    "preset": ["classic"],
    "target": ["postgres", "sqlite,postgres", ["sqlite", "postgres"]],
    "name": ["rails"],
    "seed": ["7"],
}
"""Values of every option that are each valid alone."""

TEXTS = st.text(CHARACTERS, max_size=20) | st.sampled_from(
    [text for texts in WRITTEN.values() for text in texts]
)
GIVEN = st.dictionaries(st.sampled_from(list(by_name("kv"))), TEXTS | anything, max_size=6)


def only_case(**given: Any) -> Case:
    """Return the only case of these options, with underscores for dashes."""
    (case,) = cases_of({"concurrency": "1"} | {name.replace("_", "-"): given[name] for name in given})
    return case


def refused(given: dict[str, Any]) -> str:
    """Return the error message for unusable options."""
    with pytest.raises(UsageError) as caught:
        cases_of(given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


LOOP = "python" if native_unavailable("sqlite3") else "native"
"""Loop of a load without an option for it, on this system."""
PLANNED_ONE = Case(duration_s=0.25, warmup_s=0.03, repeat=8, spec=Load(loop=LOOP))
"""Case planned without options, except for processes and seed."""


def test_main_measurement_is_planned_without_options() -> None:
    cases = cases_of({"seed": 7})
    assert cases == tuple(replace(PLANNED_ONE, concurrency=processes, seed=7) for processes in range(1, 9))


def test_fixed_number_of_operations_is_one_trial_without_warmup() -> None:
    assert only_case(ops="100").repeat == only_case(preset="classic").repeat == 1
    assert only_case(ops="100", repeat="3").repeat == only_case(preset="classic", repeat="3").repeat == 3
    assert (only_case(ops="100").ops, only_case(ops="100").warmup_s) == (100, 0.0)


def test_cases_are_sorted_by_layout_then_concurrency_then_rate() -> None:
    given = {"concurrency": "1,4", "buckets": "20,1", "rate": "500,900", "arrival": "even"}
    assert [(case.buckets, case.concurrency, case.arrivals) for case in cases_of(given)] == [
        (buckets, processes, Arrivals(rate, "even"))
        for buckets in (20, 1)
        for processes in (1, 4)
        for rate in (500, 900)
    ]


def test_every_option_arrives_where_it_belongs() -> None:
    case = only_case(
        concurrency="3", buckets="7", duration="1.5s", warmup="250ms", repeat="4", read_ratio="0.25",
        update_ratio="0.125", key_space="5000", distribution="zipfian", key_type="blob", value_size="64",
        batch="5", begin="deferred", journal_mode="truncate", synchronous="extra", fullfsync="on",
        wal_autocheckpoint="200", page_size="8192", cache_size="-4000", mmap_size="65536",
        pragma=("temp_store=memory", "cell_size_check=on"), busy_timeout="1500ms", driver="apsw",
        verify="full", seed="99", loop="python",
    )  # fmt: skip
    settings = Settings(
        journal_mode="truncate", synchronous="extra", fullfsync=True, wal_autocheckpoint=200, page_size=8192,
        cache_size=-4000, mmap_size=65536, pragmas=(("temp_store", "memory"), ("cell_size_check", "on")),
        busy_timeout_ms=1500,
    )  # fmt: skip
    assert case == Case(
        driver="apsw", concurrency=3, buckets=7, duration_s=1.5, warmup_s=0.25, repeat=4, seed=99,
        verify="full", settings=settings,
        spec=Load(
            read_ratio=0.25, update_ratio=0.125, key_space=5000, distribution="zipfian", key_type="blob",
            value_size=64, batch=5, begin="deferred", loop="python",
        ),
    )  # fmt: skip


NEEDED = {
    "checkpoint-interval": {"checkpointer": "passive"},
    "begin": {"batch": "5"},
    "arrival": {"rate": "100"},
    "isolation": {"driver": "psycopg"},
    "dsn": {"driver": "psycopg"},
    "latency-limit": {"rate": "100"},
}
"""Options that have an effect only in combination with others."""


def test_every_option_has_an_effect_of_its_own() -> None:
    assert WRITTEN.keys() == by_name("kv").keys()
    for name, values in WRITTEN.items():
        plain = {"concurrency": "1", "seed": "1", **NEEDED.get(name, {})}
        if name not in ("preset", "anyway") and not (name == "where" and native_unavailable("sqlite3")):
            assert cases_of({**plain, name: values[-1]}) != cases_of(plain), name


def test_checkpointer_but_no_pinned_reader_replaces_workers_checkpoints() -> None:
    case = only_case(checkpointer="restart", checkpoint_interval="50ms")
    assert case.spec.checkpointing == Checkpointing("restart", 0.05, False)
    assert case.settings.wal_autocheckpoint == 0
    case = only_case(pinned_reader=True)
    assert case.spec.checkpointing == Checkpointing("none", 0.02, True)
    assert case.settings.wal_autocheckpoint is None


def test_missing_seed_is_drawn_once_for_all_cases() -> None:
    first, second = cases_of({}), cases_of({})
    assert len({case.seed for case in first}) == 1
    assert first[0].seed != second[0].seed


@given(GIVEN)
def test_any_values_of_options_are_a_plan_or_refused_in_a_line(given_options: dict[str, Any]) -> None:
    try:
        cases = cases_of(given_options)
    except UsageError as error:
        assert len(str(error)) < 240
        assert "\n" not in str(error)
        return
    assert 1 <= len(cases) <= MAX_CASES
    for case in cases:
        assert case.spec.read_ratio + case.spec.update_ratio <= 1 + 1e-9
        assert case.workload == "classic" or case.spec.batch <= case.spec.key_space
        assert case.ops is not None or case.duration_s > 0
        assert case.warmup_s >= 0
        hash(case)


# The published script


def test_published_script_is_reproduced() -> None:
    cases = cases_of({"preset": "classic", "buckets": "1,20", "seed": 5})
    assert len(cases) == 16
    case = cases[-1]
    assert (case.workload, unit_of(case)) == ("classic", "pair")
    assert (case.concurrency, case.buckets, case.ops, case.warmup_s) == (8, 20, 5000, 0.0)
    assert case.settings.synchronous is None
    assert (case.settings.journal_mode, case.settings.busy_timeout_ms) == ("wal", 60_000)
    assert case.spec.begin == "deferred"


FREE = ("concurrency", "buckets", "driver", "target", "repeat", "seed", "verify", "max-failed", "preset")


@pytest.mark.parametrize("name", sorted(WRITTEN.keys() - {*FREE, "checkpoint-interval"}))
def test_published_script_allows_no_contradiction(name: str) -> None:
    other = {"begin": "immediate", "warmup": "1s", "loop": "native"}.get(name, WRITTEN[name][-1])
    said = refused({"preset": "classic", name: other})
    assert said.startswith(f"--{name} contradicts --preset classic, which ")
    assert said.endswith("Leave one of them out.")


def test_published_script_accepts_its_own_values_and_other_options() -> None:
    plain = only_case(preset="classic", seed=1)
    same = {"ops": "5000", "warmup": "0s", "read-ratio": "0.5", "value-size": "8", "begin": "deferred"}
    same |= {"journal-mode": "WAL", "busy-timeout": "1m"}
    for name, value in same.items():
        assert only_case(preset="classic", seed=1, **{name: value}) == plain
    assert only_case(preset="classic", seed=1, pragma=()) == plain
    free = {"concurrency": "3", "buckets": "5", "repeat": "2", "driver": "apsw", "verify": "none"}
    for name, value in free.items():
        assert only_case(preset="classic", seed=1, **{name: value}) != plain


# Plans in TOML


def cases_of_plan(tmp_path: Path, text: str | bytes) -> tuple[Case, ...]:
    path = tmp_path / "plan.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return from_toml(path)


def plan_refused(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        cases_of_plan(tmp_path, text)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(str(tmp_path / "plan.toml"))
    assert len(said) < 320
    return said.removeprefix(str(tmp_path / "plan.toml"))


def test_plan_has_defaults_and_cases(tmp_path: Path) -> None:
    text = """
        workload = "kv"
        seed = 3
        synchronous = "normal"
        [[case]]
        concurrency = [1, "4-5"]
        [[case]]
        concurrency = 2
        buckets = 20
        synchronous = "full"
        fullfsync = true
        read-ratio = 0.9
        pragma = ["temp_store=memory"]
    """
    normal = replace(PLANNED_ONE, seed=3, settings=Settings(synchronous="normal"))
    full = Settings(fullfsync=True, pragmas=(("temp_store", "memory"),))
    *first, last = cases_of_plan(tmp_path, text)
    assert first == [replace(normal, concurrency=processes) for processes in (1, 4, 5)]
    load = Load(read_ratio=0.9, loop=LOOP)
    assert last == replace(normal, concurrency=2, buckets=20, settings=full, spec=load)


def test_all_cases_of_a_plan_share_the_seed_that_is_drawn(tmp_path: Path) -> None:
    text = '[[case]]\nworkload = "kv"\n[[case]]\nworkload = "kv"\n[[case]]\nworkload = "kv"\nseed = 5\n'
    seeds = [case.seed for case in cases_of_plan(tmp_path, text)]
    assert len(set(seeds[:16])) == 1
    assert set(seeds[16:]) == {5}


KV = '[[case]]\nworkload = "kv"\n'
WRONG_PLANS = [
    "",
    "case = [1]",
    "[[cases]]\nconcurrency = 1",
    "[[case]]",
    '[[case]]\nworkload = "none"',
    '[[case]]\nworkload = "cycle"',
    KV + 'journal-mode = "wla"',
    KV + 'busy = "fair"',
    'workload = "kv"\n[[case]]\n[[case]]\nconcurency = 4',
    KV + "xyzzy = 1",
    KV + '"\\n" = 1',
    KV + 'duration = "soon"',
    KV + "concurrency = true",
    "[[case]]\nworkload = 0x" + "f" * 450,
    "[[case]]\nworkload = " + "[\n" * 300 + "]" * 300,
    KV + "ops = 0x" + "f" * 450,
    KV + "ops = " + "9" * 9000,
    KV + "read-ratio = 1e999",
    "#" + "\n" * (128 << 10),
    ".".join("x" * 251) + " = 1",
]


def test_wrong_plan_is_refused_with_the_position(tmp_path: Path) -> None:
    found = {repr(text)[:70]: plan_refused(tmp_path, text) for text in WRONG_PLANS}
    assert_golden_texts("plans-refused.txt", found)


@pytest.mark.parametrize("text", ["[[case]\n", b"\xff\x00", "x = " + "[\n" * 50_000, "x = " + "{x = " * 90])
def test_invalid_toml_is_refused(tmp_path: Path, text: str | bytes) -> None:
    assert plan_refused(tmp_path, text).startswith(" is not a TOML file: ")


def test_plan_of_too_many_cases_is_refused(tmp_path: Path) -> None:
    text = 'workload = "kv"\nconcurrency = "1-600"\n[[case]]\n[[case]]'
    with pytest.raises(UsageError, match=r"plan.toml, case 2: the plan has more than 1,000 cases"):
        cases_of_plan(tmp_path, text)


def test_missing_plan_or_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nope.toml", tmp_path):
        with pytest.raises(UsageError, match="cannot read the plan"):
            from_toml(path)


# The loop of a load: its choice, its fallback, its name in reports; results of both loops are not mixed.


LACKING = "nothing was built"


def loop_of(**given: Any) -> str:
    (case,) = cases_of({"concurrency": "1", **given})
    loop: str = case.spec.loop
    return loop


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite.TARGET, "lacks_native", lambda driver: LACKING)


def driven(loop: str) -> Report:
    """Return the example report, as if this loop had driven its loads."""
    return with_case(spec=replace(EXAMPLE.runs[0].case.spec, loop=loop))


@pytest.mark.skipif(native_unavailable("sqlite3") is not None, reason="there is no native loop here")
@pytest.mark.parametrize("driver", ["sqlite3", "apsw", "dry"])
def test_native_loop_is_the_default(driver: str) -> None:
    assert loop_of(driver=driver) == loop_of(driver=driver, loop="native") == "native"
    assert loop_of(driver=driver, loop="python") == "python"


@pytest.mark.usefixtures("lacking")
def test_missing_native_loop_falls_back_to_python_unless_requested() -> None:
    (case,) = cases_of({"concurrency": "1"})
    assert (case.spec.loop, not_native(case)) == ("python", LACKING)
    with pytest.raises(UsageError, match=rf"--loop native .*sqlite3: {LACKING}\. Use --loop python\."):
        loop_of(loop="native")


def test_chosen_loop_has_no_remark() -> None:
    (case,) = cases_of({"concurrency": "1", "loop": "python"})
    assert not_native(case) is None
    assert not_native(Case(workload="classic")) is None


def test_report_without_a_loop_is_of_the_python_loop() -> None:
    text = to_json(EXAMPLE)
    old = from_json(text.replace(',\n      "loop": "python"', ""))
    assert '"loop"' in text
    assert {run.case.spec.loop for run in old.runs} == {"python"}


@pytest.mark.parametrize(("loop", "words"), [("native", "native loop"), ("python", "Python loop")])
def test_line_above_the_table_names_the_loop(loop: str, words: str) -> None:
    assert f"; {words};" in " ".join(report_text(driven(loop)).split())


def test_ab_test_compares_both_loops_only_if_an_arm_names_one() -> None:
    a, b = (Case(spec=replace(Case().spec, loop=loop)) for loop in ("native", "python"))
    check_loops((a, a), [{}, {}])
    check_loops((a, b), [{"loop": "native"}, {}])
    with pytest.raises(UsageError, match=r"A would use the native loop.*Add --loop python"):
        check_loops((a, b), [{}, {}])
    with pytest.raises(UsageError, match=r"A would use the python loop.*Add --loop python"):
        check_loops((b, a), [{}, {}])
