"""The command line of the simulation, and its page."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tabulate import tabulate

from benchmarks.gate.noise import NOISES
from benchmarks.gate.rates import clopper_pearson, met
from benchmarks.gate.simulation import MOST_PAIRS, PAIR_S, Row, rows
from benchmarks.options import positive
from benchmarks.surroundings import revision
from sqlstress.report import write_atomically
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE, PASS

HEADERS = ("noise", "B slower by", "--max-drop", "fail", "pass", "inconclusive", "pairs", "minutes")
WRONG, FOUND, MINUTES = 0.01, 0.9, 3.0
"""At most, at least, at most."""
QUIET = ("quiet", "typical")
"""On which a drop must be found."""


def main(arguments: list[str]) -> int:
    """Simulate, write the page and the figures, and return the exit code."""
    given = _parser().parse_args(arguments)
    with ProcessPoolExecutor(given.workers) as workers:
        found = rows(given.tests, workers, lambda done: print(_cells(done), file=sys.stderr, flush=True))
    command = " ".join(("python -m benchmarks gate simulate", *arguments))
    page = markdown(found, command)
    write_atomically(given.output.with_suffix(".md"), page)
    plain = {"command": command, "revision": revision(), "rows": [asdict(one) for one in found]}
    write_atomically(given.output.with_suffix(".json"), json.dumps(plain, indent=1) + "\n")
    print(page)
    return 0


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m benchmarks gate simulate", description=__doc__)
    found.add_argument("--tests", type=positive, default=3000, help="of each kind (default: 3000)")
    found.add_argument("--workers", type=positive, default=os.cpu_count(), help="processes (default: all)")
    found.add_argument("--output", type=Path, required=True, metavar="NAME.md", help="and NAME.json")
    return found


def markdown(found: list[Row], command: str) -> str:
    """Return everything as Markdown."""
    drawn, turns = ([one for one in found if one.ordering == which] for which in ("drawn", "in turns"))
    parts = [
        "# How sure the gate is: simulated",
        f"```\n{command}\n```",
        f"Each row: {found[0].tests:,} tests of at most {MOST_PAIRS} pairs, by the looks, the order and the "
        "rule of `sqlstress ab` itself, on made-up slices. Rates have exact 95 % intervals (Clopper and "
        f"Pearson). Pairs: median; minutes: at {PAIR_S} s a pair, as slices of 2 s after 0.5 s take.",
        "\n".join(f"- {noise.name}: {noise.what}" for noise in NOISES),
        _table(drawn),
        "\n".join(f"- {line}" for line in targets(drawn)),
        "If the order of a pair were not drawn, but fixed (ABBA):",
        _table(turns),
    ]
    return "\n\n".join(parts) + "\n"


def _table(found: list[Row]) -> str:
    cells = [_cells(one) for one in found]
    align = ("left", *("right",) * (len(HEADERS) - 1))
    return tabulate(cells, HEADERS, tablefmt="pipe", disable_numparse=True, colalign=align)


def _cells(found: Row) -> tuple[str, ...]:
    return (
        found.noise,
        f"{found.drop:.0%}",
        f"{found.max_drop:.0%}",
        *(_rate(found, verdict) for verdict in (FAIL, PASS, INCONCLUSIVE)),
        f"{found.pairs:g}",
        f"{found.pairs * PAIR_S / 60:.1f}",
    )


def _rate(found: Row, verdict: str) -> str:
    low, high = clopper_pearson(found.verdicts.get(verdict, 0), found.tests)
    return f"{found.rate(verdict):.1%} ({low:.1%} to {high:.1%})"


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
    (quiet,) = (one for one in same if one.noise == "quiet" and one.max_drop == 0.1)
    minutes = quiet.pairs * PAIR_S / 60
    yield f"minutes on a quiet machine: median {minutes:.1f}, at most {MINUTES:g}: {met(minutes <= MINUTES)}"


def _most(what: str, worst: Row, verdict: str) -> str:
    rate = worst.rate(verdict)
    where = f"{worst.noise}, {worst.drop:.0%} at --max-drop {worst.max_drop:.0%}"
    return f"{what}, the worst noise: {rate:.2%} ({where}), {_at_most(rate)}"


def _at_most(rate: float) -> str:
    return f"at most {WRONG:.0%}: {met(rate <= WRONG)}"
