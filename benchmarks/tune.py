"""tune: how near does `sqlstress tune` come to the best of a full grid?

    python -m benchmarks tune --output FILE.md

Made-up surfaces, with noise: minutes. A search is good whose answer is within 5 % of the best of the grid;
what can't be told is the default. Markdown and JSON are written after every noise. Exit codes: 0 measured,
130 interrupted.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from random import Random
from statistics import median

from benchmarks.document import revision, write
from benchmarks.options import command
from sqlstress.experiments.tune.search import Search
from sqlstress.statistics.search import Row

SIZES = (4, 3, 2, 2, 2)
"""Levels of what is searched where nothing is given: a grid of 96."""
SLICES = 120
"""For which there is time in three minutes."""
NEAR = math.log(1 / 0.95)
EFFECT, TOGETHER = 0.15, 0.03
"""Standard deviations of logarithms: of what a level does, and of what two do only together."""
NOISES = {"quiet": 0.03, "typical": 0.07, "noisy": 0.15}

Surface = Callable[[Row], float]


@dataclass(frozen=True, slots=True)
class Found:
    """What one search found."""

    setting: str
    loss: float
    """By how much its answer is below the best of the grid, as a logarithm."""
    of_default: float
    """The same of the default."""
    slices: int


def surface(draw: Random) -> Surface:
    """Draw what each row does: of two factors in five nothing, and little that two levels do together."""
    own = [[0.0, *(draw.gauss(0, EFFECT) for _ in range(count - 1))] for count in SIZES]
    own = [levels if draw.random() < 0.6 else [0.0] * len(levels) for levels in own]
    places = [(factor, level) for factor, count in enumerate(SIZES) for level in range(1, count)]
    both = {pair: draw.gauss(0, TOGETHER) for pair in combinations(places, 2)}

    def logarithm(row: Row) -> float:
        chosen = [place for place in enumerate(row) if place[1]]
        alone = sum(own[factor][level] for factor, level in chosen)
        return alone + sum(both[pair] for pair in combinations(chosen, 2))

    return logarithm


def simulated(setting: str, noise: float, seed: int) -> Found:
    """Search once on a surface that is made up."""
    draw, taken = Random(f"{setting}:{seed}"), 0
    true = surface(draw)
    search = Search(SIZES, seed, lambda: taken / SLICES)
    for wanted in search.slices():
        taken += 1
        search.enter(wanted, 1000 * math.exp(true(wanted.row) + draw.gauss(0, noise)))
    best, gain = max(map(true, product(*map(range, SIZES)))), search.gain()
    answer = search.chosen if search.chosen and gain and gain.is_above else search.default
    return Found(setting, best - true(answer), best - true(search.default), taken)


def table(found: Sequence[Found]) -> str:
    """Return a row for each setting: how many came near the best, and by how much they missed it."""
    lines = [
        "| | searches | within 5 % of the best | loss, median | loss of the default, median | slices |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for setting in dict.fromkeys(one.setting for one in found):
        own = [one for one in found if one.setting == setting]
        near = sum(one.loss <= NEAR for one in own) / len(own)
        lost = -math.expm1(-median(one.loss for one in own))
        of_default = -math.expm1(-median(one.of_default for one in own))
        slices = median(one.slices for one in own)
        cells = (setting, f"{len(own):,}", f"{near:.1%}", f"{lost:.1%}", f"{of_default:.1%}", f"{slices:.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def markdown(arguments: Sequence[str], found: Sequence[Found], note: str) -> str:
    """Return everything that was found."""
    title = "# tune: how near does `sqlstress tune` come to the best of a full grid?"
    words = f"`python -m benchmarks tune {' '.join(arguments)}`, revision {revision() or 'unknown'}."
    return "\n\n".join([title, words, note, table(found), ""])


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code."""
    parser = command("tune", __doc__)
    parser.add_argument("--searches", type=int, default=1000, help="searches of each noise")
    given = parser.parse_args(arguments)
    noises = ", ".join(f"{name} {noise:.0%}" for name, noise in NOISES.items())
    note = (
        f"Made-up surfaces on a grid of {math.prod(SIZES)}: a level does e^N(0, {EFFECT}), two of them "
        f"together e^N(0, {TOGETHER}) more; two factors of five do nothing alone. {SLICES} slices a search. "
        f"What can't be told is the default. The noise of a slice: {noises}."
    )
    found: list[Found] = []
    try:
        for name, noise in NOISES.items():
            found += [simulated(name, noise, seed) for seed in range(given.searches)]
            write(given.output, markdown(arguments, found, note), [asdict(one) for one in found])
            print(table(found), flush=True)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
