"""The gate's benchmark: its arithmetic, a driver that is slower by a known share, and a tiny real run."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.document import CHECKOUT, write
from benchmarks.gate import simulated, slowed
from benchmarks.gate.real import Outcome, Results, Setting, kept, markdown, table, targets, to_come
from benchmarks.gate.simulated import NOISES, ORDERINGS, Row, answered, concluded, is_wrong, row
from benchmarks.gate.slowed import Slowed, waiting_after
from benchmarks.rates import clopper_pearson
from sqlstress.errors import UsageError
from sqlstress.statistics.compare import signed_rank_bounds
from sqlstress.statistics.sequential import conclude, direction
from sqlstress.targets.sqlite.drivers import DRIVERS, load_driver


@pytest.fixture(autouse=True)
def no_driver_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the slowed driver out of the registry again."""
    monkeypatch.setitem(DRIVERS, slowed.NAME, slowed.__name__)


SETTING = Setting(0.1, 0.1, 1, "normal", 0.5, 500, 200, 1200.0)


def outcome(share: float, verdict: str, seconds: float = 60.0, max_drop: float = 0.1) -> Outcome:
    return Outcome(share, max_drop, 1, verdict, 10, 1.0 - share, seconds, (0.01, -0.02))


def save(results: Results, folder: Path) -> None:
    write(folder / "gate.md", "", asdict(results))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("hits", "runs"), [(0, 100), (1, 100), (5, 20), (20, 20), (0, 1), (99, 100), (3, 5000), (4990, 5000)]
)
def test_intervals_of_rates_are_scipys(hits: int, runs: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(hits, runs).proportion_ci(0.95, "exact")
    assert clopper_pearson(hits, runs) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_a_slowed_operation_takes_its_share_longer_and_answers_the_same() -> None:
    def call(params: tuple[int, ...]) -> int:
        until = time.perf_counter() + 0.01
        while time.perf_counter() < until:
            pass
        return params[0]

    begun = time.perf_counter()
    assert waiting_after(call, 0.75)((7,)) == 7
    assert time.perf_counter() - begun >= 0.04


def test_a_process_that_is_sent_the_name_knows_the_driver_and_its_share() -> None:
    sent = pickle.dumps(Slowed(0.25)).hex()
    code = (
        f"import pickle; name = pickle.loads(bytes.fromhex('{sent}'))\n"
        "from sqlstress.targets.sqlite.drivers import DRIVERS, load_driver\n"
        "driver = load_driver(name); print(name, name.share, driver._share, driver.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.stdout.split() == ["slowed", "0.25", "0.25", "benchmarks.gate.slowed"], done.stderr
    assert load_driver(Slowed(0.0)) is slowed


def test_the_tests_that_are_wanted_come_to_their_ends_together() -> None:
    results = Results(SETTING)
    order = []
    for asked in islice(to_come(results, {(0.0, 0.1): 4, (0.2, 0.1): 2}), 10):
        order.append(asked)
        results.outcomes.append(outcome(asked[0], "pass"))
    assert sorted(order) == [(0.0, 0.1)] * 4 + [(0.2, 0.1)] * 2
    assert (0.2, 0.1) in order[:3]


def test_what_was_kept_is_gone_on_with_and_other_slices_are_refused(tmp_path: Path) -> None:
    results = Results(SETTING, outcomes=[outcome(0.0, "pass")])
    save(results, tmp_path)
    assert kept(tmp_path / "gate.json", SETTING).outcomes == results.outcomes
    assert kept(tmp_path / "new.json", SETTING).outcomes == []
    with pytest.raises(UsageError, match="measured with other slices"):
        kept(tmp_path / "gate.json", replace(SETTING, duration_s=2.0))


def test_the_table_counts_verdicts_and_sets_them_beside_their_targets() -> None:
    same = [outcome(0.0, "pass")] * 98 + [outcome(0.0, "fail"), outcome(0.0, "inconclusive", 240.0)]
    slower = [outcome(0.2, "fail")] * 8 + [outcome(0.2, "pass")] * 2
    half = [outcome(0.1, "fail", max_drop=0.05)] * 9 + [outcome(0.1, "inconclusive", max_drop=0.05)]
    results = Results(SETTING, outcomes=[*same, *slower, *half])
    first, _, second = table(results).splitlines()[2:]
    assert "1: 1.0% (0.0% to 5.4%)" in first and "98: 98.0%" in first and "1.0 (4.0)" in first
    assert "8: 80.0% (44.4% to 97.5%)" in second
    assert list(targets(results)) == [
        "false alarms, of what is allowed: 1.0%, at most 1%: reached",
        "false passes of a drop of 20%: 20.0%, at most 1%: SHORT",
        "a drop of 10% found at --max-drop 5%: 90.0%, at least 90%: reached",
        # Ten pairs of slices that are 2.3 s longer.
        "minutes of A against A, were slices 2 s: median 1.8, at most 3: reached",
    ]
    assert table(results) in markdown(results)


@pytest.mark.thorough
def test_a_tiny_real_run_goes_on_with_what_was_kept(tmp_path: Path) -> None:
    setting = Setting(0.06, 0.1, 1, "off", 0.5, 200, 10, 60.0)
    save(Results(setting, outcomes=[outcome(0.0, "pass")]), tmp_path)
    slices = ("--duration", "60ms", "--warmup", "100ms", "--key-space", "200", "--synchronous", "off")
    asked = ("--same", "2", "--slowed", "0", "--max-pairs", "10", "--max-time", "60s", *slices)
    where = ("--dir", str(tmp_path), "--output", str(tmp_path / "gate.md"))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "gate", *asked, *where],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "gate.json").read_text(encoding="utf-8"))
    kept_one, measured = found["outcomes"]
    assert kept_one["verdict"] == "pass"
    # On a busy machine nothing may be completed in some slice.
    assert measured["verdict"] == "undecided" or measured["pairs"] == len(measured["differences"]) == 10
    assert "false alarms, of what is allowed: " in (tmp_path / "gate.md").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gate.json", "gate.md"]


def test_every_model_of_noise_is_the_same_again_for_the_same_seed_and_knows_no_end() -> None:
    for noise in NOISES:
        first, again, other = (list(islice(noise.slices(Random(seed)), 400)) for seed in (1, 1, 2))
        assert first == again != other, noise.name


def test_a_simulated_test_finds_what_is_there_and_passes_what_is_not() -> None:
    found = [row("quiet", "drawn", drop, 0.1, 20) for drop in (0.0, 0.05, 0.2)]
    assert [one.verdicts for one in found] == [{"pass": 20}, {"pass": 20}, {"fail": 20}]
    assert [one.answers.get("slower", 0) > 5 for one in found] == [False, True, True]
    assert row("quiet", "drawn", -0.1, 0.1, 20).answers == {"faster": 20}
    assert row("hopeless", "drawn", 0.0, 0.1, 5).verdicts["inconclusive"] >= 4


@pytest.mark.parametrize(
    ("verdict", "answer", "drop", "wrong"),
    [
        ("pass", "slower", 0.05, False),
        ("pass", "slower", 0.0, True),
        ("pass", "faster", 0.0, True),
        ("pass", "faster", -0.1, False),
        ("pass", "unclear", 0.2, True),
        ("fail", "slower", 0.1, True),
        ("fail", "slower", 0.2, False),
        ("inconclusive", "faster", 0.05, True),
    ],
)
def test_a_report_is_wrong_if_its_verdict_or_its_answer_is(
    verdict: str, answer: str, drop: float, wrong: bool
) -> None:
    assert is_wrong(verdict, answer, drop, 0.1) == wrong


def test_a_neighbour_that_comes_by_turns_deceives_fixed_turns_and_not_an_order_that_is_drawn() -> None:
    turns, drawn = (
        row("periodic", ordering, 0.0, 0.1, 60).rate("fail") for ordering in ("in turns", "drawn")
    )
    assert drawn == 0 < 0.05 < turns
    assert set(ORDERINGS) == {"in turns", "drawn"}


def test_the_page_of_a_simulation_sets_the_worst_rates_beside_their_targets() -> None:
    def one(drop: float, max_drop: float, **verdicts: int) -> Row:
        return Row("quiet", "drawn", drop, max_drop, {"pass": 0, **verdicts}, 10.0)

    rows = [one(0.0, 0.1, **{"pass": 99, "fail": 1})]
    rows += [replace(one(0.2, 0.1, **{"pass": 3, "fail": 97}), wrong=4)]
    rows += [one(0.1, 0.1, **{"pass": 0, "fail": 2, "inconclusive": 98})]
    rows += [replace(one(0.1, 0.05, fail=89, inconclusive=11), noise=name) for name in simulated.QUIET]
    assert list(simulated.targets(rows)) == [
        "false alarms of A against A, the worst noise: 1.00% (quiet, 0% at --max-drop 10%), "
        "at most 1%: reached",
        "false passes of a drop of 20%, the worst noise: 3.00% (quiet, 20% at --max-drop 10%), "
        "at most 1%: SHORT",
        "fail where the drop is just --max-drop, all noises: 2.00%, at most 1%: SHORT",
        "pass where the drop is just --max-drop, all noises: 0.00%, at most 1%: reached",
        "a drop of 10% found at --max-drop 5%, quiet: 89.0%, at least 90%: SHORT",
        "a drop of 10% found at --max-drop 5%, typical: 89.0%, at least 90%: SHORT",
        "reports with a wrong verdict or answer, the worst row: 4.00% (quiet, 20% at --max-drop 10%), at "
        "most 5%: reached",
        "minutes on a quiet machine: median 0.9, at most 3: reached",
    ]
    page = simulated.markdown([*rows, replace(rows[0], ordering="in turns")], "x")
    assert "| 99.0% (94.6% to 100.0%)" in page


@given(st.lists(st.integers(-30, 10), min_size=1, max_size=40), st.integers(-20, 0), st.floats(0.0005, 0.05))
def test_the_simulations_quick_rule_is_the_gates(found: list[int], allowed: int, alpha: float) -> None:
    assert concluded(found, allowed, alpha) == conclude([found], allowed, alpha)
    assert answered(found, alpha) == direction(signed_rank_bounds(found, alpha))
