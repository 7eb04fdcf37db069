"""limits: does `sqlstress limit` find the same rate again, and how long does it take?

    python -m benchmarks limits --runs 5 --output benchmarks/results/limits.md

The same search, several times, on this machine as it is and beside processes that take a processor each. Two
answers overlap when a rate may be the limit by both: the higher of what holds is no more than the lower of
what does not. Markdown and JSON are written after every search. Exit codes: 0 measured, 4 a search failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NoReturn

import psutil

from sqlstress.analysis.highest_rate import answered
from sqlstress.report import from_json
from sqlstress.report.saving import write_atomically

AS_IT_IS, BUSY = "as it is", "busy"
BURN = "while True: pass"


@dataclass(frozen=True, slots=True)
class Search:
    """One search, and what it found."""

    setting: str
    """As the machine was, or beside processes of ours."""
    holds: int | None
    breaks: int | None
    seconds: float
    windows: int
    load_average: float
    """Of the minute before it began."""


def overlap(one: Search, other: Search) -> bool:
    """Say whether a rate may be the limit by both answers."""
    low, high = max(one.holds or 0, other.holds or 0), (one.breaks, other.breaks)
    return all(end is None or low <= end for end in high)


@contextmanager
def beside(count: int) -> Iterator[None]:
    """Run so many processes that do nothing but compute."""
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def searched(setting: str, arguments: Sequence[str]) -> Search:
    """Search once. Raises CalledProcessError."""
    load, began = psutil.getloadavg()[0], time.monotonic()
    command = [sys.executable, "-m", "sqlstress", "limit", *arguments, "--no-progress", "-o", "json:-"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8")
    report = from_json(done.stdout)
    assert report.limit
    found = answered(report, report.limit)
    windows = sum(len(run.trials) for run in report.runs if run.case.arrivals)
    return Search(setting, found.holds, found.breaks, time.monotonic() - began, windows, load)


def markdown(searches: Sequence[Search], arguments: Sequence[str]) -> str:
    """Return what was found, a row for each search."""
    lines = [
        "# limits: does `sqlstress limit` find the same rate again?",
        "",
        f"`sqlstress limit {' '.join(arguments)}`, over and over on one machine. Two answers overlap when a "
        "rate may be the limit by both.",
    ]
    for setting in dict.fromkeys(one.setting for one in searches):
        own = [one for one in searches if one.setting == setting]
        pairs = list(combinations(own, 2))
        agree = sum(overlap(one, other) for one, other in pairs)
        took = median(one.seconds for one in own)
        lines += [
            "",
            f"## The machine {setting}",
            f"{agree} of {len(pairs)} pairs of answers overlap. Median {took:.0f} s.",
            "",
            "| holds | does not hold | seconds | windows | load average before |",
            "|---:|---:|---:|---:|---:|",
            *map(_row, own),
        ]
    return "\n".join([*lines, ""])


def _row(one: Search) -> str:
    holds, breaks = ("?" if end is None else f"{end:,}/s" for end in (one.holds, one.breaks))
    return f"| {holds} | {breaks} | {one.seconds:.0f} | {one.windows} | {one.load_average:.1f} |"


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks limits", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="searches of each kind")
    parser.add_argument("--burning", type=int, default=1, help="processes beside the busy ones")
    parser.add_argument("--options", default="--p99 20ms", help="options of the search")
    parser.add_argument("--output", type=Path, required=True, help="Markdown; JSON goes beside it")
    given = parser.parse_args(arguments)
    options, searches = given.options.split(), list[Search]()
    try:
        # In turns, so that what drifts meets both.
        for setting, count in [(AS_IT_IS, 0), (BUSY, given.burning)] * given.runs:
            with beside(count):
                searches.append(searched(setting, options))
            write_atomically(given.output.with_suffix(".md"), markdown(searches, options))
            plain = json.dumps([asdict(one) for one in searches], indent=1) + "\n"
            write_atomically(given.output.with_suffix(".json"), plain)
            print(_row(searches[-1]), flush=True)
    except subprocess.CalledProcessError as error:
        print(f"a search failed with {error.returncode}; what was found before is kept", file=sys.stderr)
        return 4
    return 0


def _run() -> NoReturn:
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    _run()
