"""The command line of the gate's benchmark."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.gate import __doc__ as about
from benchmarks.gate import simulate
from benchmarks.gate.experiments import SEEDS, Asked, Results, Setting, experiment, kept, to_come
from benchmarks.gate.table import markdown, table, targets
from benchmarks.options import duration, folder, positive
from benchmarks.surroundings import build_lines, host_lines, revision
from sqlstress.engine.study import NOBODY
from sqlstress.errors import Interrupted, SqlstressError
from sqlstress.report import write_atomically
from sqlstress.report.case import SYNCHRONOUS
from sqlstress.studies.slices import OwnPython, SliceBench

SAME = (0.0, 0.1)
SLOWED = ((0.05, 0.1), (0.1, 0.05), (0.2, 0.1))
"""A drop that is allowed, one that is not, and one that is twice what is allowed."""


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code: 0, 2, 4 or 130, as the other benchmarks do."""
    if arguments[:1] == ["simulate"]:
        return simulate.main(arguments[1:])
    given = _parser().parse_args(arguments)
    setting = Setting(
        given.duration,
        given.warmup,
        given.concurrency,
        given.synchronous,
        given.read_ratio,
        given.key_space,
        given.max_pairs,
        given.max_time,
    )
    wanted = {SAME: given.same, **dict.fromkeys(SLOWED, given.slowed)}
    try:
        results = kept(given.output.with_suffix(".json"), setting)
        with OwnPython([setting.case(0.0, given.seed)], given.dir, ()).opened(NOBODY) as bench:
            _describe(results, bench, arguments)
            done = _measure(results, bench, given, {kind: count for kind, count in wanted.items() if count})
    except SqlstressError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    if results.outcomes:
        print("\n".join([table(results), "", *targets(results)]))
    return 0 if done else Interrupted.exit_code


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks gate",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = found.add_argument
    add("--same", type=int, default=200, help="tests of A against A (default: 200)")
    add("--slowed", type=int, default=50, help="tests of each slowed B (default: 50)")
    add("--minutes", type=float, help="begin no test after so long (default: all of them)")
    add("--duration", type=duration, default=2.0, help="window of a slice (default: 2s)")
    add("--warmup", type=duration, default=0.5, help="load before it (default: 500ms)")
    add(
        "--concurrency",
        type=positive,
        default=1,
        help="processes; with 1 the shares are exact (default)",
    )
    add("--synchronous", choices=SYNCHRONOUS, default="full", help="(default: full)")
    add("--read-ratio", type=float, default=0.5, help="share of gets (default: 0.5)")
    add("--key-space", type=positive, default=10_000, help="keys, preloaded for each slice (default: 10000)")
    add("--max-pairs", type=positive, default=200, help="pairs of a test at most (default: 200)")
    add("--max-time", type=duration, default=1200.0, help="of a test (default: 20m)")
    add("--seed", type=int, default=1, help="of the first test (default: 1)")
    add("--dir", type=folder, default=Path(), help="where the databases go (default: here)")
    add("--output", type=Path, required=True, metavar="NAME.md", help="write, and go on from, NAME.json")
    return found


def _describe(results: Results, bench: SliceBench, arguments: list[str]) -> None:
    if not results.outcomes:
        results.created = datetime.now(UTC).isoformat(timespec="seconds")
        results.revision = revision()
    results.command = ("python", "-m", "benchmarks", "gate", *map(shlex.quote, arguments))
    results.surroundings = (*host_lines(bench.report.environment), *build_lines(bench.report.environment))


def _measure(
    results: Results, bench: SliceBench, given: argparse.Namespace, wanted: dict[Asked, int]
) -> bool:
    """Measure what is wanted, as far as the time goes; return False when it was interrupted."""
    begun = time.monotonic()
    for asked in to_come(results, wanted):
        if given.minutes and time.monotonic() - begun > 60 * given.minutes:
            break
        outcome = experiment(bench, results.setting, asked, given.seed + SEEDS * len(results.outcomes))
        if outcome is None:
            return False
        results.outcomes.append(outcome)
        results.save(given.output.with_suffix(".json"))
        write_atomically(given.output.with_suffix(".md"), markdown(results))
        print(
            f"{len(results.outcomes)}/{sum(wanted.values())} slower by {asked[0]:.0%}, {asked[1]:.0%} "
            f"allowed: {outcome.verdict} after {outcome.pairs} pairs, {outcome.seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    return True
