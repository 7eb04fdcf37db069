"""Thousands of made-up A/B tests: the gate's own looks, order and rule, on models of what machines do."""

from __future__ import annotations

import math
import os
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from random import Random
from statistics import median

from tabulate import tabulate

from benchmarks.document import listed, revision, write
from benchmarks.gate import FOUND, MINUTES, WRONG
from benchmarks.options import command, positive
from benchmarks.rates import described, met
from sqlstress.analysis.wording import percent
from sqlstress.statistics.compare import signed_rank_critical as critical
from sqlstress.statistics.sequential import (
    ALPHA,
    FAIL,
    FASTER,
    INCONCLUSIVE,
    PASS,
    SLOWER,
    UNCLEAR,
    UNDECIDED,
    Look,
    answer_share,
    looks,
    tolerance,
)
from sqlstress.studies.ab import first_arm, order

MOST_PAIRS = 200
QUESTIONS = (
    (0.0, 0.1),
    (0.05, 0.1),
    (0.1, 0.1),
    (0.2, 0.1),
    (0.0, 0.05),
    (0.1, 0.05),
    (-0.1, 0.1),
    (-0.1, 0.005),
)
"""By which share B is slower, below 0 faster, and which --max-drop is asked for."""
PAIR_S = 5.7
"""What a pair takes with slices of 2 s after 0.5 s: the rest is the preparation of its databases."""
USUAL = int(180 / PAIR_S)
"""Pairs in the 3 minutes of --max-time."""
LONGER = "typical", "noisy"
"""Noises on which tests of 20 minutes, or MOST_PAIRS, are simulated too."""
HEADERS = (
    *("noise", "B slower by", "--max-drop", "fail", "pass", "inconclusive"),
    *("faster", "slower", "anything wrong", "pairs", "minutes"),
)
MOST_WRONG = 0.05
"""Of the reports, at most, in which the verdict or the answer is wrong."""
QUIET = ("quiet", "typical")
"""On which a drop must be found."""


# What machines do to the throughput of slices, from a quiet machine to a hopeless one: each model gives,
# slice by slice in the order of time, the logarithm of what the machine takes or gives. It knows nothing of
# A and B.

Slices = Iterator[float]


@dataclass(frozen=True, slots=True)
class Noise:
    """A model."""

    name: str
    what: str
    """In words, with its size."""
    slices: Callable[[Random], Slices]


def white(draw: Random, deviation: float) -> Slices:
    """Yield slices that know nothing of each other."""
    while True:
        yield draw.gauss(0.0, deviation)


def _heavy(draw: Random) -> Slices:
    """Yield Student's t with two degrees of freedom, which has no variance."""
    while True:
        yield 0.05 * draw.gauss(0.0, 1.0) / math.sqrt(draw.expovariate(1.0))


def _stalls(draw: Random) -> Slices:
    for calm in white(draw, 0.03):
        yield calm - (draw.uniform(0.3, 1.2) if draw.random() < 0.1 else 0.0)


def _drift(draw: Random) -> Slices:
    for number, calm in enumerate(white(draw, 0.05)):
        yield calm - 0.01 * number


def _autocorrelated(draw: Random) -> Slices:
    """Yield an autoregressive process: what is slow now is likely to be slow a slice later."""
    slow = draw.gauss(0.0, 0.15)
    for calm in white(draw, 0.03):
        yield slow + calm
        slow = 0.6 * slow + draw.gauss(0.0, 0.15 * math.sqrt(1 - 0.6**2))


def _periodic(draw: Random) -> Slices:
    """Yield a neighbour that comes around every four slices."""
    phase = draw.random()
    for number, calm in zip(count(), white(draw, 0.05), strict=False):
        yield calm + 0.1 * math.sin(2 * math.pi * (number / 4 + phase))


NOISES = (
    Noise("quiet", "slices vary by 2 %", lambda draw: white(draw, 0.02)),
    Noise("typical", "slices vary by 7 %", lambda draw: white(draw, 0.07)),
    Noise("noisy", "slices vary by 20 %", lambda draw: white(draw, 0.2)),
    Noise("hopeless", "slices vary by 70 %", lambda draw: white(draw, 0.7)),
    Noise("heavy tails", "Student's t, 2 degrees of freedom, times 5 %", _heavy),
    Noise("stalls", "every tenth slice loses a quarter to two thirds, others vary by 3 %", _stalls),
    Noise("drift", "1 % slower with every slice, which vary by 5 %", _drift),
    Noise("autocorrelated", "15 %, 0.6 of it still there a slice later, and 3 %", _autocorrelated),
    Noise("periodic", "a wave of 10 % every four slices, which vary by 5 %", _periodic),
)


# The tests

Ordering = Callable[[str, int, int], tuple[int, int]]
"""(first arm, seed, pair) → in which order the arms are measured, 0 or 1."""


def _in_turns(first: str, seed: int, pair: int) -> tuple[int, int]:
    """Return the order of fixed turns, ABBA: what it would be if chance did not draw it."""
    begins = (first == "B") ^ (pair % 2)
    return begins, 1 - begins


ORDERINGS: dict[str, Ordering] = {"drawn": order, "in turns": _in_turns}


@dataclass(frozen=True, slots=True)
class Row:
    """How tests of one kind ended."""

    noise: str
    ordering: str
    drop: float
    max_drop: float
    verdicts: dict[str, int]
    """How often each verdict was given."""
    pairs: float
    """Median."""
    most: int = USUAL
    """Pairs after which the time is over."""
    answers: dict[str, int] = field(default_factory=dict)
    """How often B was said to be faster or slower, and how often neither."""
    wrong: int = 0
    """Reports whose verdict or answer is wrong."""

    @property
    def tests(self) -> int:
        """Return how many tests there were."""
        return sum(self.verdicts.values())

    def rate(self, verdict: str) -> float:
        """Return the share of tests with a verdict."""
        return self.verdicts.get(verdict, 0) / self.tests


def concluded(differences: Sequence[float], allowed: float, alpha: float) -> str:
    """Return what `conclude` does of one cell, a hundred times as fast: by counts instead of all averages."""
    return {1: PASS, -1: FAIL}.get(_side(differences, allowed, alpha), UNDECIDED)


def answered(differences: Sequence[float], alpha: float) -> str:
    """Return what `direction` says of their bounds, in the same way."""
    return {1: FASTER, -1: SLOWER}.get(_side(differences, 0.0, alpha), UNCLEAR)


def _side(differences: Sequence[float], limit: float, alpha: float) -> int:
    """Say on which side of a limit both bounds lie: 1 above, -1 below, 0 on neither."""
    most = critical(len(differences), alpha)
    if most < 0:
        return 0
    if _averages_up_to(limit, differences) <= most:
        return 1
    return -(_averages_up_to(-limit, [-one for one in differences]) <= most)


def _averages_up_to(limit: float, differences: Sequence[float]) -> int:
    """Return how many Walsh averages lie at or below a limit."""
    ordered = sorted(differences)
    partners = (bisect_right(ordered, 2 * limit - one) - at for at, one in enumerate(ordered))
    return sum(count for count in partners if count > 0)


def in_time(most: int) -> list[Look]:
    """Return the looks of a test whose time is over after so many pairs: the last has the rest of ALPHA."""
    before = [look for look in looks(MOST_PAIRS) if look.pairs < most]
    return [*before, Look(most, ALPHA - sum(look.alpha for look in before))]


def _simulate(
    noise: Noise, ordering: Ordering, drop: float, max_drop: float, seed: int, most: int
) -> tuple[str, str, int]:
    """Return the verdict of one test, whether B is faster, and after how many pairs that was found."""
    slices, first = noise.slices(Random(f"{noise.name}:{drop}:{max_drop}:{seed}")), first_arm(seed)
    effect, allowed, found = math.log1p(-drop), tolerance("tps", max_drop), list[float]()
    for number, look in enumerate(in_time(most), 1):
        for pair in range(len(found), look.pairs):
            measured = dict(zip(ordering(first, seed, pair), islice(slices, 2), strict=True))
            found.append(effect + measured[1] - measured[0])
        verdict = concluded(found, allowed, look.alpha)
        if look.pairs == most and verdict == UNDECIDED:
            verdict = INCONCLUSIVE
        if verdict != UNDECIDED:
            return verdict, answered(found, answer_share(number, look.alpha)), len(found)
    raise AssertionError("the last look is the one after most pairs")


def is_wrong(verdict: str, answer: str, drop: float, max_drop: float) -> bool:
    """Say whether a report says anything wrong; of a drop of just what is allowed both verdicts are."""
    false_verdict = (verdict == FAIL and drop <= max_drop) or (verdict == PASS and drop >= max_drop)
    return false_verdict or (answer == FASTER and drop >= 0) or (answer == SLOWER and drop <= 0)


def row(noise: str, ordering: str, drop: float, max_drop: float, tests: int, most: int = USUAL) -> Row:
    """Return how so many tests ended."""
    model = next(one for one in NOISES if one.name == noise)
    ended = [_simulate(model, ORDERINGS[ordering], drop, max_drop, seed, most) for seed in range(tests)]
    verdicts, answers, pairs = zip(*ended, strict=True)
    wrong = sum(is_wrong(verdict, answer, drop, max_drop) for verdict, answer, _ in ended)
    counts = dict(Counter(verdicts)), median(pairs), most, dict(Counter(answers))
    return Row(noise, ordering, drop, max_drop, *counts, wrong)


def _rows(tests: int, workers: Executor) -> Iterator[Row]:
    kinds = [(noise.name, "drawn", *question, tests, USUAL) for noise in NOISES for question in QUESTIONS]
    kinds += [(noise, "drawn", *question, tests, MOST_PAIRS) for noise in LONGER for question in QUESTIONS]
    for question in (QUESTIONS[0], QUESTIONS[2]):
        kinds += [(noise, "in turns", *question, tests, USUAL) for noise in ("autocorrelated", "periodic")]
    for future in [workers.submit(row, *kind) for kind in kinds]:
        yield future.result()


# The command, and its page


def main(arguments: list[str]) -> int:
    """Simulate, write the page and the figures, and return the exit code."""
    parser = command("gate simulate", __doc__)
    parser.add_argument("--tests", type=positive, default=3000, help="of each kind (default: 3000)")
    parser.add_argument("--workers", type=positive, default=os.cpu_count(), help="processes (default: all)")
    given, found = parser.parse_args(arguments), list[Row]()
    with ProcessPoolExecutor(given.workers) as workers:
        for done in _rows(given.tests, workers):
            found.append(done)
            print(_cells(done), file=sys.stderr, flush=True)
    words = " ".join(("python -m benchmarks gate simulate", *arguments))
    page = markdown(found, words)
    write(given.output, page, {"command": words, "revision": revision(), "rows": list(map(asdict, found))})
    print(page)
    return 0


def markdown(found: list[Row], words: str) -> str:
    """Return everything as Markdown."""
    turns = [one for one in found if one.ordering == "in turns"]
    drawn, longer = (
        [one for one in found if one not in turns and one.most == most] for most in (USUAL, MOST_PAIRS)
    )
    parts = [
        "# How sure the gate is: simulated",
        f"```\n{words}\n```",
        f"Each row: {found[0].tests:,} tests of at most {USUAL} pairs (3 minutes), by the looks, the order "
        "and the rule of `sqlstress ab` itself, on made-up slices. Rates have exact 95 % intervals (Clopper "
        f"and Pearson). Pairs: median; minutes: at {PAIR_S} s a pair, as slices of 2 s after 0.5 s take. "
        "Faster, slower: what was said of B; anything wrong: reports whose verdict or answer is wrong.",
        listed([f"{noise.name}: {noise.what}" for noise in NOISES]),
        _table(drawn),
        listed(targets(drawn)),
        f"With `--max-time 20m`, {MOST_PAIRS} pairs at most:",
        _table(longer),
        "If the order of a pair were not drawn, but fixed (ABBA):",
        _table(turns),
    ]
    return "\n\n".join(parts) + "\n"


def _table(found: list[Row]) -> str:
    align = ("left", *("right",) * (len(HEADERS) - 1))
    return tabulate(map(_cells, found), HEADERS, tablefmt="pipe", disable_numparse=True, colalign=align)


def _cells(one: Row) -> tuple[str, ...]:
    rates = (described(one.verdicts.get(verdict, 0), one.tests) for verdict in (FAIL, PASS, INCONCLUSIVE))
    said = (f"{one.answers.get(answer, 0) / one.tests:.1%}" for answer in (FASTER, SLOWER))
    wrong, minutes = f"{one.wrong / one.tests:.2%}", one.pairs * PAIR_S / 60
    kind = (one.noise, f"{one.drop:.0%}", percent(one.max_drop))
    return *kind, *rates, *said, wrong, f"{one.pairs:g}", f"{minutes:.1f}"


def targets(found: list[Row]) -> Iterator[str]:
    """Yield what was to be reached, and whether it was."""
    same = [one for one in found if one.drop == 0.0]
    yield _most("false alarms of A against A", max(same, key=lambda one: one.rate(FAIL)), FAIL)
    twenty = [one for one in found if one.drop == 0.2]
    yield _most("false passes of a drop of 20%", max(twenty, key=lambda one: one.rate(PASS)), PASS)
    limit = [one for one in found if one.drop == one.max_drop]
    for verdict in (FAIL, PASS):
        rate = sum(one.rate(verdict) for one in limit) / len(limit)
        yield f"{verdict} where the drop is just --max-drop, all noises: {rate:.2%}, {_at_most(rate)}"
    for name in QUIET:
        (ten,) = (one for one in found if one.noise == name and (one.drop, one.max_drop) == (0.1, 0.05))
        reached = met(ten.rate(FAIL) >= FOUND)
        yield f"a drop of 10% found at --max-drop 5%, {name}: {ten.rate(FAIL):.1%}, at least 90%: {reached}"
    worst = max(found, key=lambda one: one.wrong / one.tests)
    wrong = worst.wrong / worst.tests
    where = f"{worst.noise}, {worst.drop:.0%} at --max-drop {worst.max_drop:.0%}"
    what = "reports with a wrong verdict or answer, the worst row"
    yield f"{what}: {wrong:.2%} ({where}), at most {MOST_WRONG:.0%}: {met(wrong <= MOST_WRONG)}"
    (quiet,) = (one for one in same if one.noise == "quiet" and one.max_drop == 0.1)
    minutes = quiet.pairs * PAIR_S / 60
    yield f"minutes on a quiet machine: median {minutes:.1f}, at most {MINUTES:g}: {met(minutes <= MINUTES)}"


def _most(what: str, worst: Row, verdict: str) -> str:
    rate = worst.rate(verdict)
    where = f"{worst.noise}, {worst.drop:.0%} at --max-drop {worst.max_drop:.0%}"
    return f"{what}, the worst noise: {rate:.2%} ({where}), {_at_most(rate)}"


def _at_most(rate: float) -> str:
    return f"at most {WRONG:.0%}: {met(rate <= WRONG)}"
