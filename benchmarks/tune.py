"""tune: how near does `sqlstress tune` come to the best of a full grid?

    python -m benchmarks tune --output FILE.md                made-up surfaces, with noise: minutes
    python -m benchmarks tune --real 10 --output FILE.md      for real: searches, and the whole grid, in turns

A search is good whose answer is within 5 % of the best of the grid; what can't be told is the default.
Markdown and JSON are written after every part. Exit codes: 0 measured, 4 not measured, 130 interrupted.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path
from random import Random
from statistics import fmean, median

import psutil

from benchmarks.document import revision, write
from benchmarks.options import command
from sqlstress.engine.session import Session
from sqlstress.engine.study import NOBODY
from sqlstress.errors import SqlstressError
from sqlstress.experiments.tune.search import Options, Search, Space, factors_of
from sqlstress.plan import cases_of
from sqlstress.report import from_json
from sqlstress.report.case import Case
from sqlstress.statistics.search import Row

SIZES = (4, 3, 2, 2, 2)
"""Levels of what is searched where nothing is given: a grid of 96."""
SLICES = 120
"""For which there is time in three minutes."""
NEAR = math.log(1 / 0.95)
EFFECT, TOGETHER = 0.15, 0.03
"""Standard deviations of logarithms: of what a level does, and of what two do only together."""
NOISES = {"quiet": 0.03, "typical": 0.07, "noisy": 0.15}
LOAD = {
    "concurrency": "4",
    "synchronous": "normal",
    "duration": "300ms",
    "warmup": "100ms",
    "key-space": "20000",
    "cache-size": "-2000",
    "mmap-size": "0",
}
"""Of the real ones: a grid of 24."""

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


def space() -> Space:
    """Return the grid of the real ones."""

    def plan(options: Options) -> Case:
        return cases_of({**LOAD, "seed": 1, "repeat": "1", **options})[0]

    return Space(factors_of(LOAD, plan({}), [1]), plan)


def measured(grid: Space, rounds: int) -> Iterator[dict[Row, float]]:
    """Yield the mean logarithm of each row of the grid, after every round of slices in a drawn order."""
    rows = list(product(*map(range, grid.sizes)))
    cases = {row: grid.case(row) for row in rows}
    logs: dict[Row, list[float]] = {row: [] for row in rows}
    with Session(tuple(cases.values()), Path(), False, ()).opened(NOBODY) as bench:
        for number in range(rounds):
            Random(number).shuffle(rows)
            for row in rows:
                logs[row].append(math.log(bench.runner.run(cases[row], number).tps))
            yield {row: fmean(own) for row, own in logs.items()}


def searched(grid: Space, seed: int, max_time: str) -> tuple[Row, int]:
    """Search once for real; return the answer, and how many slices it took. Raises CalledProcessError."""
    options = [f"--{name}={value}" for name, value in LOAD.items()]
    words = [*options, f"--seed={seed}", f"--max-time={max_time}", "--no-progress", "-o", "json:-"]
    running = [sys.executable, "-m", "sqlstress", "tune", *words]
    done = subprocess.run(running, stdout=subprocess.PIPE, check=True, encoding="utf-8")
    report = from_json(done.stdout)
    result, slices = report.results["tune"], sum(len(run.trials) for run in report.runs)
    rows = product(*map(range, grid.sizes))
    if not result.gain or not result.gain.is_above:
        return (0,) * len(grid.sizes), slices
    return next(row for row in rows if grid.words(row) == result.chosen), slices


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
    parser.add_argument("--searches", type=int, default=1000, help="made-up searches of each noise")
    parser.add_argument("--real", type=int, default=0, help="real searches, instead")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of slices over the whole real grid")
    parser.add_argument("--max-time", default="1m", help="of a real search")
    given = parser.parse_args(arguments)
    parts = _real(given.real, given.rounds, given.max_time) if given.real else _simulated(given.searches)
    try:
        for found, note in parts:
            write(given.output, markdown(arguments, found, note), [asdict(one) for one in found])
            print(table(found), flush=True)
    except KeyboardInterrupt:
        return 130
    except (subprocess.CalledProcessError, SqlstressError) as error:
        print(error, file=sys.stderr)
        return 4
    return 0


Part = tuple[list[Found], str]
"""What was found until now, and how."""


def _simulated(searches: int) -> Iterator[Part]:
    noises = ", ".join(f"{name} {noise:.0%}" for name, noise in NOISES.items())
    note = (
        f"Made-up surfaces on a grid of {math.prod(SIZES)}: a level does e^N(0, {EFFECT}), two of them "
        f"together e^N(0, {TOGETHER}) more; two factors of five do nothing alone. {SLICES} slices a search. "
        f"What can't be told is the default. The noise of a slice: {noises}."
    )
    found: list[Found] = []
    for name, noise in NOISES.items():
        found += [simulated(name, noise, seed) for seed in range(searches)]
        yield found, note


def _real(searches: int, rounds: int, max_time: str) -> Iterator[Part]:
    grid, busy = space(), psutil.getloadavg()[0]
    answers = [searched(grid, seed, max_time) for seed in range(searches)]
    for number, means in enumerate(measured(grid, rounds), 1):
        best = max(means.values())
        found = [
            Found("real", best - means[row], best - means[(0,) * len(row)], slices) for row, slices in answers
        ]
        load = " ".join(f"--{name} {value}" for name, value in LOAD.items())
        note = (
            f"Real searches of {max_time}, and then {number} rounds of slices over the whole grid of "
            f"{math.prod(grid.sizes)}; its best mean is taken for the best, and chance lifts it. The load: "
            f"`{load}`. Load average of the machine before: {busy:.1f}."
        )
        yield found, note


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
