"""Whole A/B tests on real databases, one after the other, kept so that they can be gone on with."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from tabulate import tabulate

from benchmarks import gate
from benchmarks.document import build_lines, host_lines, listed, revision, write
from benchmarks.gate import FOUND, MINUTES, WRONG
from benchmarks.gate.slowed import Slowed
from benchmarks.options import command, duration, folder, positive
from benchmarks.rates import described, met
from sqlstress.analysis.ab import differences
from sqlstress.engine.study import NOBODY
from sqlstress.errors import Interrupted, SqlstressError, UsageError
from sqlstress.experiments.kv.experiment import Load
from sqlstress.report import AbTest, Arm
from sqlstress.report.case import SYNCHRONOUS, Case, Settings
from sqlstress.report.study_results import DRAWN
from sqlstress.statistics.sequential import looks
from sqlstress.studies.ab import AbStudy, first_arm
from sqlstress.studies.slices import OwnPython, SliceBench
from sqlstress.studies.sweep import follow

Kind = tuple[float, float]
"""A kind of test: by which share B is slowed, and which share is allowed."""
SAME = (0.0, 0.1)
SLOWED = ((0.05, 0.1), (0.1, 0.05), (0.2, 0.1))
"""A drop that is allowed, one that is not, and one that is twice what is allowed."""
SEEDS = 1000
"""Between the seeds of two experiments: more than the pairs of one take."""
DEFAULT_SLICE_S = 2.5
"""What a slice of `sqlstress ab` takes where nothing else is asked for: 2 s after 0.5 s."""
VERDICTS = ("fail", "pass", "inconclusive")
HEADERS = ("B slower by", "--max-drop", "tests", *VERDICTS, "not measured", "pairs", "minutes")


@dataclass(frozen=True, slots=True)
class Setting:
    """How every slice is measured."""

    duration_s: float
    warmup_s: float
    concurrency: int
    synchronous: str
    read_ratio: float
    key_space: int
    max_pairs: int
    max_time_s: float

    def case(self, share: float, seed: int) -> Case:
        """Return a slice of an arm that is slowed by a share."""
        return Case(
            driver=Slowed(share),
            concurrency=self.concurrency,
            duration_s=self.duration_s,
            warmup_s=self.warmup_s,
            seed=seed,
            settings=Settings(synchronous=self.synchronous),
            spec=Load(read_ratio=self.read_ratio, key_space=self.key_space),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one experiment ended."""

    share: float
    """By which share B was slowed, 0 to under 1."""
    max_drop: float
    """Which share was allowed."""
    seed: int
    verdict: str
    """fail, pass or inconclusive; undecided where a slice could not be measured."""
    pairs: int
    ratio: float | None
    """B over A, as the last look estimated it."""
    seconds: float
    differences: tuple[float, ...] = ()
    """Of each pair, so that another rule can be tried on them: logarithms of B over A."""
    error: str | None = None


@dataclass(slots=True)
class Results:
    """What has been measured, as it is kept in a file."""

    setting: Setting
    created: str = ""
    command: tuple[str, ...] = ()
    revision: str = ""
    surroundings: tuple[str, ...] = ()
    """Host, file system and library, a line each."""
    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, kind: Kind) -> list[Outcome]:
        """Return the outcomes of one kind of test."""
        return [one for one in self.outcomes if (one.share, one.max_drop) == kind]


def kept(path: Path, setting: Setting) -> Results:
    """Return what a file holds, or nothing yet. Raises UsageError when it was measured otherwise."""
    if not path.exists():
        return Results(setting)
    plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if plain["setting"] != asdict(setting):
        raise UsageError(f"{path} was measured with other slices: give them again, or another --output.")
    outcomes = [
        Outcome(**{**each, "differences": tuple(each["differences"])}) for each in plain.pop("outcomes")
    ]
    return replace(Results(**plain), setting=setting, outcomes=outcomes)


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code: 0, 2, 4 or 130, as the other benchmarks do."""
    given = _parser().parse_args(arguments)
    setting = Setting(**{one.name: getattr(given, one.name) for one in fields(Setting)})
    wanted = {SAME: given.same, **dict.fromkeys(SLOWED, given.slowed)}
    try:
        results = kept(given.output.with_suffix(".json"), setting)
        with OwnPython([setting.case(0.0, given.seed)], given.dir, ()).opened(NOBODY) as bench:
            if not results.outcomes:
                results.created = datetime.now(UTC).isoformat(timespec="seconds")
                results.revision = revision()
            environment = bench.report.environment
            results.command = ("python", "-m", "benchmarks", "gate", *map(shlex.quote, arguments))
            results.surroundings = (*host_lines(environment), *build_lines(environment))
            done = _measure(results, bench, given, {kind: count for kind, count in wanted.items() if count})
    except SqlstressError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    if results.outcomes:
        print("\n".join([table(results), "", *targets(results)]))
    return 0 if done else Interrupted.exit_code


def _parser() -> argparse.ArgumentParser:
    found = command("gate", gate.__doc__)
    add = found.add_argument
    add("--same", type=int, default=200, help="tests of A against A (default: 200)")
    add("--slowed", type=int, default=50, help="tests of each slowed B (default: 50)")
    add("--minutes", type=float, help="begin no test after so long (default: all of them)")
    add("--duration", type=duration, default=2.0, dest="duration_s", help="window of a slice (default: 2s)")
    add("--warmup", type=duration, default=0.5, dest="warmup_s", help="load before it (default: 500ms)")
    add("--concurrency", type=positive, default=1, help="processes; with 1 the shares are exact (default)")
    add("--synchronous", choices=SYNCHRONOUS, default="full", help="(default: full)")
    add("--read-ratio", type=float, default=0.5, help="share of gets (default: 0.5)")
    add("--key-space", type=positive, default=10_000, help="keys, preloaded for each slice (default: 10000)")
    add("--max-pairs", type=positive, default=200, help="pairs of a test at most (default: 200)")
    add("--max-time", type=duration, default=180.0, dest="max_time_s", help="of a test (default: 3m)")
    add("--seed", type=int, default=1, help="of the first test (default: 1)")
    add("--dir", type=folder, default=Path(), help="where the databases go (default: here)")
    return found


def to_come(results: Results, wanted: dict[Kind, int]) -> Iterator[Kind]:
    """Yield the tests that are still wanted, so that all kinds of them come to their ends together."""
    while True:
        left = {kind: count - len(results.of(kind)) for kind, count in wanted.items()}
        kind = max(left, key=lambda one: left[one] / wanted[one])
        if left[kind] <= 0:
            return
        yield kind


def _measure(results: Results, bench: SliceBench, given: argparse.Namespace, wanted: dict[Kind, int]) -> bool:
    """Measure what is wanted, as far as the time goes; return False when it was interrupted."""
    begun = time.monotonic()
    for kind in to_come(results, wanted):
        if given.minutes and time.monotonic() - begun > 60 * given.minutes:
            break
        outcome = experiment(bench, results.setting, kind, given.seed + SEEDS * len(results.outcomes))
        if outcome is None:
            return False
        results.outcomes.append(outcome)
        write(given.output, markdown(results), asdict(results))
        print(
            f"{len(results.outcomes)}/{sum(wanted.values())} slower by {kind[0]:.0%}, {kind[1]:.0%} "
            f"allowed: {outcome.verdict} after {outcome.pairs} pairs, {outcome.seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    return True


def experiment(bench: SliceBench, setting: Setting, kind: Kind, seed: int) -> Outcome | None:
    """Carry out one A/B test; None when it was interrupted."""
    share, max_drop = kind
    a, b = ([setting.case(own, seed)] for own in (0.0, share))
    test = AbTest(
        "tps",
        max_drop,
        (Arm("A"), Arm("B")),
        first_arm(seed),
        order=DRAWN,
        max_pairs=setting.max_pairs,
        max_time_s=setting.max_time_s,
    )
    begun = time.monotonic()
    report = follow(AbStudy((a, b), test, looks(setting.max_pairs)), bench)
    if report.interrupted:
        return None
    assert report.ab
    return Outcome(
        share=share,
        max_drop=max_drop,
        seed=seed,
        verdict=report.ab.verdict,
        pairs=len(report.runs[0].trials),
        ratio=report.ab.looks[-1].ratio if report.ab.looks else None,
        seconds=time.monotonic() - begun,
        differences=tuple(round(one, 5) for cell in differences(report, report.ab) for one in cell),
        error=report.ab.reason or next((run.error for run in report.runs if run.error), None),
    )


def markdown(results: Results) -> str:
    """Return everything as Markdown."""
    setting = results.setting
    slices = (
        f"slices of {setting.duration_s:g} s after {setting.warmup_s:g} s of warm-up, "
        f"{setting.concurrency} process{'es' * (setting.concurrency != 1)}, synchronous "
        f"{setting.synchronous}, {setting.read_ratio:.0%} gets, {setting.key_space:,} keys; "
        f"at most {setting.max_pairs} pairs and {setting.max_time_s / 60:g} minutes"
    )
    measured = f"Measured {results.created}, revision {results.revision or 'unknown'}."
    parts = [
        "# How sure the gate is",
        f"```\n{' '.join(results.command)}\n```",
        listed((measured, *results.surroundings, slices)),
        "Each test is a whole `sqlstress ab`. B is A with a busy wait after each operation, in proportion "
        "to it. Rates have exact 95 % intervals (Clopper-Pearson). Pairs: median; minutes: the longest too.",
        table(results),
        listed(targets(results)),
        *dict.fromkeys(f"Not measured: {one.error}." for one in results.outcomes if one.error),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(results: Results) -> str:
    """Return a row for each kind of test."""
    kinds = sorted({(outcome.share, outcome.max_drop) for outcome in results.outcomes})
    rows = [_cells(kind, results.of(kind)) for kind in kinds]
    return tabulate(rows, HEADERS, tablefmt="pipe", disable_numparse=True, colalign=("right",) * len(HEADERS))


def _cells(kind: Kind, outcomes: list[Outcome]) -> tuple[str, ...]:
    minutes, runs = [outcome.seconds / 60 for outcome in outcomes], len(outcomes)
    rates = (
        f"{hits}: {described(hits, runs)}" for hits in (_count(outcomes, verdict) for verdict in VERDICTS)
    )
    return (
        *(f"{kind[0]:.0%}", f"{kind[1]:.0%}", str(runs), *rates, str(_count(outcomes, "undecided"))),
        f"{median(outcome.pairs for outcome in outcomes):g}",
        f"{median(minutes):.1f} ({max(minutes):.1f})",
    )


def _count(outcomes: list[Outcome], verdict: str) -> int:
    return sum(outcome.verdict == verdict for outcome in outcomes)


def targets(results: Results) -> Iterator[str]:
    """Yield what was to be reached, and whether it was."""
    allowed = [one for one in results.outcomes if one.share <= one.max_drop]
    if allowed:
        rate = _count(allowed, "fail") / len(allowed)
        yield f"false alarms, of what is allowed: {rate:.1%}, at most {WRONG:.0%}: {met(rate <= WRONG)}"
    if slower := results.of((0.2, 0.1)):
        rate = _count(slower, "pass") / len(slower)
        yield f"false passes of a drop of 20%: {rate:.1%}, at most {WRONG:.0%}: {met(rate <= WRONG)}"
    if half := results.of((0.1, 0.05)):
        rate = _count(half, "fail") / len(half)
        reached = met(rate >= FOUND)
        yield f"a drop of 10% found at --max-drop 5%: {rate:.1%}, at least {FOUND:.0%}: {reached}"
    if same := results.of(SAME):
        # How long so many pairs would have taken with the default slices.
        longer_s = DEFAULT_SLICE_S - results.setting.duration_s - results.setting.warmup_s
        middle = median((one.seconds + 2 * one.pairs * longer_s) / 60 for one in same)
        reached = met(middle <= MINUTES)
        yield f"minutes of A against A, were slices 2 s: median {middle:.1f}, at most {MINUTES:g}: {reached}"
