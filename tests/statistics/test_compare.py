"""Comparison: each statistic equals a reference, and error rates are as promised."""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate, combinations, product
from math import exp
from random import Random
from statistics import NormalDist, fmean, median, stdev, variance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.compare import (
    Passes,
    Ratio,
    _orders,
    _residual_variance,
    all_differences,
    hodges_lehmann,
    min_sample_size,
    probability_within,
    quantile,
    signed_rank_bounds,
    signed_rank_critical,
    spread,
    unpaired,
    unpaired_bounds,
    unpaired_critical,
    walsh_averages,
    without_interval,
)

# Ratios over passes: Student's t equals a reference, and the error rate of verdicts is as promised.


@pytest.fixture(scope="module")
def stats() -> Any:
    """SciPy's distributions, whose installation and import take as long as hundreds of tests."""
    return pytest.importorskip("scipy.stats")


STUDENT = [
    *((0.0, 9, 0.0), (0.5, 1, 0.2951672353008665), (12.7, 1, 0.9499756723106558)),
    *((1.0, 2, 0.5773502691896257), (4.3, 2, 0.9499428458829084), (3.18, 3, 0.9499059793741458)),
    *((0.01, 3, 0.007350888587148052), (1.5, 6, 0.815719263858518), (2.228, 10, 0.9499882281828886)),
    *((0.7, 17, 0.50660380045663), (1.98, 101, 0.9495757083760308), (3.3, 200, 0.9988552773348711)),
]
"""Values, degrees of freedom, and the probability from SciPy."""


@pytest.mark.parametrize(("value", "degrees", "probability"), STUDENT)
def test_distribution_and_quantile_equal_students_t(value: float, degrees: int, probability: float) -> None:
    assert probability_within(value, degrees) == pytest.approx(probability, abs=1e-9)
    assert quantile((1 + probability) / 2, degrees) == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.thorough
@given(st.floats(0, 200), st.floats(0.5, 0.9999), st.integers(1, 200))
def test_distribution_and_quantile_equal_scipy_everywhere(
    stats: Any, value: float, probability: float, degrees: int
) -> None:
    assert probability_within(value, degrees) == pytest.approx(2 * stats.t.cdf(value, degrees) - 1, abs=1e-9)
    expected = stats.t.ppf(probability, degrees)
    assert quantile(probability, degrees) == pytest.approx(expected, rel=1e-6, abs=1e-9)


figures = st.floats(0.1, 1e6)


@given(st.lists(st.tuples(figures, figures), min_size=3, max_size=12))
def test_interval_of_two_cases_is_that_of_the_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    passes = Passes({"a": _numbered([a for a, _ in pairs]), "b": _numbered([b for _, b in pairs])}, 0.05)
    ratio = passes.ratio("a", "b")
    logs = [math.log(b / a) for a, b in pairs]
    assert ratio
    assert math.log(ratio.estimate) == pytest.approx(fmean(logs), abs=1e-9)
    error = stdev(logs) / math.sqrt(len(logs))
    if error > 1e-12:
        reach = quantile(0.975, len(logs) - 1) * error
        assert math.log(ratio.low) == pytest.approx(fmean(logs) - reach, rel=1e-6, abs=1e-6)
        assert math.log(ratio.high) == pytest.approx(min(fmean(logs) + reach, 700), rel=1e-6, abs=1e-6)


def _numbered(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def test_only_passes_that_both_have_count() -> None:
    passes = Passes({"a": {0: 1.0, 1: 1.0, 2: 1.0, 3: 9.0}, "b": {0: 2.0, 1: 2.0, 2: 2.0, 4: 1.0}}, 0.05)
    assert passes.ratio("a", "b") == pytest.approx(Ratio(2.0, 2.0, 2.0, 3))
    assert passes.count == 3


def test_two_passes_give_no_ratio() -> None:
    assert Passes({"a": {0: 1.0, 1: 1.0}, "b": {0: 2.0, 1: 2.0}}, 0.05).ratio("a", "b") is None
    assert spread([1.0, 2.0]) is None
    assert spread([0.0, 1.0, 2.0]) is None


def test_spread_is_half_the_interval_of_the_mean() -> None:
    logs = [0.0, 0.1, 0.2, 0.1]
    half = 3.182446305 * stdev(logs) / 2
    assert spread([math.exp(log) for log in logs]) == pytest.approx(math.exp(half) - 1, rel=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "above", "below", "equal"),
    [
        (1.01, 2.0, True, False, False),
        (0.5, 0.99, False, True, False),
        (0.96, 1.04, False, False, True),
        (0.90, 1.04, False, False, False),
        (0.96, 1.10, False, False, False),
    ],
)
def test_interval_decides_above_below_and_equal(
    low: float, high: float, above: bool, below: bool, equal: bool
) -> None:
    ratio = Ratio(1.0, low, high, 5)
    assert (ratio.is_above, ratio.is_below, ratio.is_within(0.05)) == (above, below, equal)


Noise = Callable[[Random, int], float]


def noisy_figures(noise: Noise, drift: float, seed: int) -> Mapping[int, Mapping[int, float]]:
    """Return eight cases that differ only by noise, over five passes with a drifting level."""
    draw = Random(seed)
    levels = [draw.gauss(0, drift) for _ in range(5)]
    return {
        case: {number: math.exp(level + noise(draw, case)) for number, level in enumerate(levels)}
        for case in range(8)
    }


def calm(draw: Random, _: int) -> float:
    """Draw little noise."""
    return draw.gauss(0, 0.02)


def heavy(draw: Random, _: int) -> float:
    """Draw from Student's t with three degrees of freedom, which has outliers."""
    return 0.05 * draw.gauss(0, 1) / math.sqrt(draw.gammavariate(1.5, 1 / 1.5))


NOISES: dict[str, Noise] = {
    "the same": lambda draw, _: draw.gauss(0, 0.05),
    "growing with the processes": lambda draw, case: draw.gauss(0, 0.02 * (case + 1)),
    "heavy tails": heavy,
    "that of one case": lambda draw, case: draw.gauss(0, 0.03 if case else 0.3),
    "now and then a stall": lambda draw, _: draw.gauss(0, 0.03) - (draw.random() < 0.05) * 0.7,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NOISES)
def test_equal_cases_rarely_show_a_difference(name: str) -> None:
    # At most 5% of the families may have a wrong verdict: 22 of 250 would be nearly three sigmas more.
    wrong = 0
    for seed in range(250):
        passes = Passes(noisy_figures(NOISES[name], 0.3, seed), 0.05)
        ratios = [passes.ratio(a, b) for a in range(8) for b in range(a)]
        wrong += any(ratio and (ratio.is_above or ratio.is_below) for ratio in ratios)
    assert wrong < 22


def test_common_drift_does_not_hide_a_difference() -> None:
    figures = noisy_figures(calm, 0.5, 1)
    twice = {**figures, 0: {number: 1.2 * value for number, value in figures[0].items()}}
    ratio = Passes(twice, 0.05).ratio(1, 0)
    assert ratio and ratio.is_above


def test_noisier_pair_has_a_wider_interval() -> None:
    passes = Passes(noisy_figures(lambda draw, case: draw.gauss(0, 0.02 if case else 0.2), 0.0, 5), 0.05)
    noisy, others = passes.ratio(1, 0), passes.ratio(1, 2)
    assert noisy and others
    assert noisy.high / noisy.low > 1.2 * others.high / others.low


def test_needed_passes_suffice_to_show_the_difference() -> None:
    def passes(count: int) -> Passes[int]:
        draw = Random(3)
        return Passes(
            {case: {number: math.exp(draw.gauss(0, 0.1)) for number in range(count)} for case in range(4)},
            0.05,
        )

    needed = passes(5).passes_needed(0.10)
    ratio = passes(needed).ratio(0, 1)
    assert 10 < needed < 200
    assert ratio and ratio.high / ratio.estimate == pytest.approx(1 / 0.9, rel=0.06)


def test_middle_is_the_geometric_mean_of_a_cases_passes() -> None:
    passes = Passes({"a": {0: 1.0, 1: 4.0, 2: 2.0}, "b": {0: 3.0, 1: 3.0, 2: 3.0}}, 0.05)
    assert passes.middle("a") == pytest.approx(2.0)


# Tests of the exact statistics of paired differences, against SciPy, brute force and each other.


coarse = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=8)
"""Few different values, so that there are many ties and zeros."""
fine = st.lists(st.integers(-(2**40), 2**40).filter(bool), min_size=1, max_size=40, unique_by=abs)
"""No ties and no zeros."""


@pytest.mark.parametrize(
    ("pairs", "alpha", "statistic"),
    [
        (4, 0.05, -1),
        (5, 0.05, 0),
        (6, 0.05, 2),
        (8, 0.025, 3),
        (20, 0.05, 60),
        (20, 0.004, 35),
        (50, 0.005, 373),
    ],
)
def test_signed_rank_critical_values_equal_the_tables(pairs: int, alpha: float, statistic: int) -> None:
    assert signed_rank_critical(pairs, alpha) == statistic


@given(st.integers(1, 12), st.floats(1e-4, 0.5))
def test_critical_value_is_the_largest_within_alpha(pairs: int, alpha: float) -> None:
    sums = [sum(ranks) for ranks in product(*((0, rank) for rank in range(1, pairs + 1)))]
    critical = signed_rank_critical(pairs, alpha)
    within, next_within = (
        sum(rank_sum <= limit for rank_sum in sums) / 2**pairs for limit in (critical, critical + 1)
    )
    assert within <= alpha < next_within


@pytest.mark.thorough
def test_hundreds_of_pairs_agree_with_the_normal_approximation() -> None:
    pairs = 300
    mean, deviation = pairs * (pairs + 1) / 4, math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
    assert signed_rank_critical(pairs, 0.01) == pytest.approx(
        mean + deviation * NormalDist().inv_cdf(0.01), abs=60
    )


@pytest.mark.thorough
@given(fine, st.floats(0.001, 0.5))
def test_bounds_exclude_zero_exactly_when_scipys_p_is_within_alpha(
    stats: Any, differences: list[int], alpha: float
) -> None:
    bounds = signed_rank_bounds(differences, alpha)
    for side, beyond in (("less", bounds and bounds[1] < 0), ("greater", bounds and bounds[0] > 0)):
        expected = stats.wilcoxon(differences, alternative=side, method="exact").pvalue
        if abs(expected - alpha) > 1e-9:
            assert bool(beyond) == (expected < alpha)


@given(coarse, st.floats(0.001, 0.5))
def test_bounds_keep_their_error_rate_with_ties_and_zeros(differences: list[float], alpha: float) -> None:
    signings = list(product((1, -1), repeat=len(differences)))
    flipped = [
        [sign * abs(item) for sign, item in zip(signs, differences, strict=True)] for signs in signings
    ]
    all_bounds = [signed_rank_bounds(item, alpha) for item in flipped]
    assert sum(ends is not None and ends[1] < 0 for ends in all_bounds) / len(signings) <= alpha
    assert sum(ends is not None and ends[0] > 0 for ends in all_bounds) / len(signings) <= alpha


def test_hodges_lehmann_equals_a_calculation_by_hand() -> None:
    assert walsh_averages([1, 2, 10]) == [1, 1.5, 2, 5.5, 6, 10]
    assert hodges_lehmann([1, 2, 10]) == 3.75
    with pytest.raises(ValueError, match=r"^there is no estimate of no pairs$"):
        hodges_lehmann([])


@given(st.lists(st.integers(-(10**6), 10**6), min_size=6, max_size=30), st.integers(-(10**6), 10**6))
def test_estimate_and_interval_follow_shift_and_sign(differences: list[int], shift: int) -> None:
    bounds = signed_rank_bounds(differences, 0.025)
    assert bounds is not None
    low, high = bounds
    assert low <= hodges_lehmann(differences) <= high
    assert signed_rank_bounds([value + shift for value in differences], 0.025) == (low + shift, high + shift)
    assert signed_rank_bounds([-value for value in differences], 0.025) == (-high, -low)
    assert hodges_lehmann([-value for value in differences]) == -hodges_lehmann(differences)


def test_interval_covers_the_centre_at_the_stated_rate() -> None:
    random = Random(1)
    covered = 0
    for _ in range(1000):
        low, high = signed_rank_bounds([random.gauss(3, 1) for _ in range(10)], 0.025) or (0.0, 0.0)
        covered += low <= 3 <= high
    assert 935 <= covered <= 965, "0.951 is exact for ten pairs"


# Tests of the exact statistics of two samples, against SciPy and each other.


distinct = st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=14, unique=True)
samples = st.lists(st.integers(-5, 5), min_size=1, max_size=8)


@pytest.mark.thorough
@given(distinct, st.integers(1, 13), st.floats(0.001, 0.5))
def test_drop_is_shown_exactly_when_scipys_p_is_within_alpha(
    stats: Any, values: list[int], at: int, alpha: float
) -> None:
    at = min(at, len(values) - 1)
    base, other = values[:at], values[at:]
    expected = stats.mannwhitneyu(other, base, alternative="less", method="exact").pvalue
    if abs(expected - alpha) > 1e-9:
        ends = unpaired_bounds(base, other, alpha)
        assert (ends is not None and ends[1] < 0) == (expected < alpha)


@pytest.mark.parametrize(
    ("m", "n", "alpha", "statistic"),
    [(5, 5, 0.025, 2), (10, 10, 0.025, 23), (3, 3, 0.05, 0), (3, 3, 0.01, -1)],
)
def test_unpaired_critical_values_equal_the_tables(m: int, n: int, alpha: float, statistic: int) -> None:
    assert unpaired_critical(m, n, alpha) == statistic


@pytest.mark.parametrize("alpha", [0.05, 0.025, 0.001])
def test_approximation_for_many_values_is_conservative(alpha: float) -> None:
    ways = list(accumulate(_orders(31, 31)))
    exact = bisect_right(ways, alpha * ways[-1]) - 1
    assert 0 <= exact - unpaired_critical(31, 31, alpha) <= 5
    assert 0 < unpaired_critical(1000, 1000, alpha) < 500_000


@given(samples, samples)
def test_ties_count_against_a_drop(base: list[int], other: list[int]) -> None:
    ends = unpaired_bounds(base, other, 0.2)
    lower = unpaired_bounds(base, [value - 0.5 for value in other], 0.2)
    assert (ends is None) == (lower is None)
    assert ends is None or lower is None or ends == (lower[0] + 0.5, lower[1] + 0.5)


@given(samples, samples)
def test_estimate_is_within_its_interval_and_inverts_with_samples(base: list[int], other: list[int]) -> None:
    ratio, turned = unpaired(base, other), unpaired(other, base)
    assert ratio and turned and ratio.low <= ratio.estimate <= ratio.high
    assert ratio.estimate == exp(median(all_differences(base, other)))
    assert turned.estimate == pytest.approx(1 / ratio.estimate)
    assert len(all_differences(base, other)) == len(base) * len(other)


def test_bounds_skip_the_tabulated_number_of_differences() -> None:
    powers = [2.0**n for n in range(10)]
    differences = all_differences(powers, powers)
    assert unpaired_bounds(powers, powers, 0.025) == (differences[23], differences[-24])
    assert unpaired(powers, powers) == (1.0, exp(differences[23]), exp(differences[-24]), 100)
    assert unpaired_bounds([1, 2, 3], [1, 2, 3], 0.05) == (-2, 2)
    assert unpaired_bounds([1, 2, 3], [1, 2, 3], 0.01) is None


def test_four_values_each_suffice_for_an_interval_of_95_percent() -> None:
    assert unpaired([1, 2, 3, 4], [1, 2, 3, 4]) == (1.0, exp(-3), exp(3), 16)
    assert unpaired([1, 2, 3], [1, 2, 3, 4]) == without_interval(exp(0.5))
    assert unpaired([], [1.0]) is None


def test_ratio_too_large_for_a_float_is_unknown() -> None:
    assert unpaired([0.0], [800.0]) is None
    ratio = unpaired([0.0] * 5, [600.0, 600.0, 600.0, 900.0, 900.0])
    assert ratio is not None and math.isfinite(ratio.high)


@pytest.mark.parametrize(("alpha", "size"), [(0.05, 3), (0.01, 5), (0.0025, 6), (0.5, 1)])
def test_needed_is_the_smallest_size_that_can_show_a_difference(alpha: float, size: int) -> None:
    assert min_sample_size(alpha) == size
    assert unpaired_critical(size, size, alpha) >= 0
    assert size == 1 or unpaired_critical(size - 1, size - 1, alpha) == -1


@pytest.mark.parametrize(("cases", "shared"), [(3, 3), (4, 6), (7, 3)])
def test_residual_variance_is_half_that_of_pairwise_differences(cases: int, shared: int) -> None:
    random = Random(cases)
    logs = [{number: random.gauss(case, 1) for number in range(shared)} for case in range(cases)]
    logs[0][shared] = 1e9  # Only one case has this pass, so it does not count.
    pairs = [
        variance(first[number] - second[number] for number in range(shared))
        for first, second in combinations(logs, 2)
    ]
    residual, freedom = _residual_variance(logs)
    assert residual == pytest.approx(fmean(pairs) / 2)
    assert freedom == (cases - 1) * (shared - 1)


def test_noise_is_a_third_of_all_cases_and_two_thirds_of_the_pair() -> None:
    random, number_of_passes = Random(5), 5
    logs = [[random.gauss(case / 10, 0.3) for _ in range(number_of_passes)] for case in range(5)]
    figures = {case: {number: exp(log) for number, log in enumerate(row)} for case, row in enumerate(logs)}
    variances = {
        pair: variance(a - b for a, b in zip(*(logs[case] for case in pair), strict=True))
        for pair in combinations(range(5), 2)
    }
    noise = {pair: fmean(variances.values()) / 3 + 2 * own / 3 for pair, own in variances.items()}
    alpha, degrees = 0.02, (5 - 1) * (number_of_passes - 1) // 3
    passes = Passes(figures, error=0.06, comparisons=3)
    ratio = passes.ratio(1, 3)
    assert ratio is not None
    reach = quantile(1 - alpha / 2, degrees) * math.sqrt(noise[1, 3] / number_of_passes)
    assert math.log(ratio.high / ratio.estimate) == pytest.approx(reach)
    assert math.log(ratio.estimate / ratio.low) == pytest.approx(reach)
    most = max(noise[0, other] for other in range(1, 5))
    for share, error in ((0.1, None), (0.3, 0.2)):
        width = quantile(1 - (error or alpha) / 2, degrees) * math.sqrt(most) / -math.log(1 - share)
        assert passes.passes_needed(share, error) == math.ceil(width**2)


def test_residual_variance_needs_three_cases_and_three_shared_passes() -> None:
    two, three = ({number: float(number) for number in range(count)} for count in (2, 3))
    assert _residual_variance([three] * 2) == _residual_variance([three, three, two]) == (0.0, 0)


@pytest.mark.parametrize(("m", "n", "alpha"), [(31, 31, 0.025), (40, 60, 0.05), (1000, 2, 0.1)])
def test_approximation_for_many_values_equals_the_normal_quantile(m: int, n: int, alpha: float) -> None:
    statistic = unpaired_critical(m, n, alpha)
    normal = NormalDist(m * n / 2, math.sqrt(m * n * (m + n + 1) / 12))
    assert normal.cdf(statistic + 0.5) <= alpha < normal.cdf(statistic + 1.5)


def test_approximation_for_two_values_finds_no_significant_statistic() -> None:
    assert unpaired_critical(31, 2, 0.001) == -1
