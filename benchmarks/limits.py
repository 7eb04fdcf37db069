"""limits: does `sqlstress limit` find the same rate again, and how long does it take?

    python -m benchmarks limits --runs 5 --output benchmarks/results/limits.md

The same search, several times, on this machine as it is and beside processes that take a processor each. The
limits are to agree within 20 %. Two answers overlap when a rate may be the limit by both: the higher of what
holds is no more than the lower of what does not. Markdown and JSON are written after every search. Exit
codes: 0 measured, 4 a search failed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import median

import psutil

from benchmarks.busy import beside
from benchmarks.document import write
from benchmarks.options import command
from sqlstress.analysis.highest_rate import answered
from sqlstress.report import from_json

AGREE = 1.2
"""The highest limit over the lowest, at most."""
AS_IT_IS, BUSY = "as it is", "busy"


@dataclass(frozen=True, slots=True)
class Search:
    """One search, and what it found."""

    setting: str
    """As the machine was, or beside processes of ours."""
    about: int | None
    holds: int | None
    breaks: int | None
    seconds: float
    windows: int
    load_average: float
    """Of the minute before it began."""
    ended: str | None
    """Why it ended early."""


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code."""
    parser = command("limits", __doc__)
    parser.add_argument("--runs", type=int, default=5, help="searches of each kind")
    parser.add_argument("--burning", type=int, default=1, help="processes beside it; 0: only as it is")
    parser.add_argument("--options", default="--p99 20ms", help="options of the search")
    given = parser.parse_args(arguments)
    options, searches = given.options.split(), list[Search]()
    try:
        # In turns, so that what drifts meets both.
        settings = [(AS_IT_IS, 0), (BUSY, given.burning)][: 2 if given.burning else 1]
        for setting, count in settings * given.runs:
            with beside(count):
                searches.append(_searched(setting, options))
            write(given.output, _markdown(searches, options), [asdict(one) for one in searches])
            print(_row(searches[-1]), flush=True)
    except subprocess.CalledProcessError as error:
        print(f"a search failed with {error.returncode}; what was found before is kept", file=sys.stderr)
        return 4
    return 0


def _searched(setting: str, arguments: Sequence[str]) -> Search:
    load, began = psutil.getloadavg()[0], time.monotonic()
    words = [sys.executable, "-m", "sqlstress", "limit", *arguments, "--no-progress", "-o", "json:-"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, encoding="utf-8")
    report = from_json(done.stdout)
    assert report.limit
    found = answered(report, report.limit)
    windows = sum(len(run.trials) for run in report.runs if run.case.arrivals)
    ends, seconds = (found.about, found.holds, found.breaks), time.monotonic() - began
    return Search(setting, *ends, seconds, windows, load, report.limit.ended)


def _overlap(one: Search, other: Search) -> bool:
    low, high = max(one.holds or 0, other.holds or 0), (one.breaks, other.breaks)
    return all(end is None or low <= end for end in high)


def _markdown(searches: Sequence[Search], arguments: Sequence[str]) -> str:
    lines = [
        "# limits: does `sqlstress limit` find the same rate again?",
        "",
        f"`sqlstress limit {' '.join(arguments)}`, over and over on one machine. Two answers overlap when a "
        "rate may be the limit by both.",
    ]
    for setting in dict.fromkeys(one.setting for one in searches):
        its = [one for one in searches if one.setting == setting]
        pairs = list(combinations(its, 2))
        agree = sum(_overlap(*pair) for pair in pairs)
        took = median(one.seconds for one in its)
        lines += [
            "",
            f"## The machine {setting}",
            f"{_agreement(its)} {agree} of {len(pairs)} pairs of answers overlap. Median {took:.0f} s.",
            "",
            "| limit | holds | does not hold | seconds | windows | load average before | ended early |",
            "|---:|---:|---:|---:|---:|---:|---|",
            *map(_row, its),
        ]
    return "\n".join([*lines, ""])


def _agreement(searches: Sequence[Search]) -> str:
    limits = [one.about for one in searches if one.about]
    if not limits:
        return "No search found the limit."
    found = f"{len(limits)} of {len(searches)} searches found the limit"
    return f"{found}: the highest is {max(limits) / min(limits):.2f} of the lowest (to be at most {AGREE:g})."


def _row(one: Search) -> str:
    rates = ("?" if end is None else f"{end:,}/s" for end in (one.about, one.holds, one.breaks))
    figures = (*rates, f"{one.seconds:.0f}", str(one.windows), f"{one.load_average:.1f}", one.ended or "")
    return f"| {' | '.join(figures)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
