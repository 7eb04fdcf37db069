"""One change at a time: what the verdict says of it, counted as it is kept in a file and shown on a page."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tabulate import tabulate

from benchmarks import mutations
from benchmarks.document import listed, revision, write
from benchmarks.mutations.catalogue import BYTES, CLEAN, ROWS, WORKLOADS, Workload
from benchmarks.mutations.trial import Change, Mutation, NothingToChange, Trial
from benchmarks.options import command, folder, positive
from benchmarks.rates import clopper_pearson
from sqlstress.machine import host
from sqlstress.targets.sqlite import TARGET

LEVELS = ("quick", "full")
MISSES = 40
"""Changes of a kind that are kept in words, of those that were not caught or not named."""
EXPLAINED = (
    "Changes caught of those tried; where fewer were named than caught, how many were named stands in "
    "brackets. `clean` is false alarms of runs that nobody changed. The last row has the exact 95 % "
    "interval (Clopper-Pearson) of the rate; n/a: such a change can't be made to these files."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a verdict said of a change."""

    change: str
    """Which one, as the table heads it."""
    level: str
    text: str
    """What was done."""
    failed: bool
    """Whether the verdict failed."""
    named: bool
    """Whether it named what was changed."""
    told: tuple[str, ...]
    """Its counter-examples."""


def try_all(workload: Workload, trial: Trial, seed: int) -> list[Outcome]:
    """Try every change that the workload's files can suffer, and none at all, on copies."""
    found = _judged(trial, CLEAN, Change("nothing", ()))
    for name, change in workload.changes.items():
        if not isinstance(change, str):
            found += try_one(workload, trial, name, change, seed)
    return found


def try_one(workload: Workload, trial: Trial, name: str, mutation: Mutation, seed: int) -> list[Outcome]:
    """Try one change; nothing comes back when this trial left nothing to change in this way."""
    trial.restore()
    try:
        change = mutation(trial, Random(f"{seed}:{workload.name}:{name}"))
    except NothingToChange:
        return []
    return _judged(trial, name, change)


def _judged(trial: Trial, name: str, change: Change) -> list[Outcome]:
    found = []
    for level in LEVELS:
        verdict = trial.verdict(level)
        told, failed = tuple(verdict.counterexamples), verdict.status == "failed"
        found.append(Outcome(name, level, change.text, failed, failed and change.is_named(told), told))
    return found


@dataclass(slots=True)
class Results:
    """What has been tried with one driver."""

    driver: str
    created: str = ""
    command: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    """Of the checkouts that did it, the first one first."""
    surroundings: tuple[str, ...] = ()
    """Host and library, a line each."""
    seeds: dict[str, list[int]] = field(default_factory=dict)
    """Workload → seeds done."""
    counts: dict[str, dict[str, dict[str, list[int]]]] = field(default_factory=dict)
    """Workload → change → level → how often it was tried, failed the verdict, and was named."""
    misses: dict[str, list[str]] = field(default_factory=dict)
    """Change and level → what was not caught, or not named, in words."""

    def add(self, workload: str, seed: int, outcomes: Iterable[Outcome]) -> None:
        """Count what was tried with one seed."""
        self.seeds.setdefault(workload, []).append(seed)
        for one in outcomes:
            by_level = self.counts.setdefault(workload, {}).setdefault(one.change, {})
            counts = by_level.setdefault(one.level, [0, 0, 0])
            for place, more in enumerate((True, one.failed, one.named)):
                counts[place] += more
            kept = self.misses.setdefault(f"{one.change}, {one.level}", [])
            if (one.failed if one.change == CLEAN else not one.named) and len(kept) < MISSES:
                told = "; ".join(text[:200] for text in one.told) or "nothing"
                kept.append(f"{workload}, seed {seed}: {one.text}; the verdict tells {told}")
        self.misses = {what: texts for what, texts in self.misses.items() if texts}

    def sum(self, workloads: Sequence[str], change: str, level: str) -> list[int]:
        """Return how often a change was tried, failed the verdict, and was named."""
        found = [self.counts[name].get(change, {}).get(level, [0, 0, 0]) for name in workloads]
        return [sum(column) for column in zip(*found, strict=True)]


def kept(path: Path, driver: str) -> Results:
    """Return what a file holds, or nothing yet. Raises ValueError when another driver was tried."""
    if not path.exists():
        return Results(driver)
    plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name in ("command", "revisions", "surroundings"):
        plain[name] = tuple(plain[name])
    found = Results(**plain)
    if found.driver != driver:
        raise ValueError(f"{path} holds what was tried with {found.driver}: give another --output")
    return found


def markdown(results: Results) -> str:
    """Return everything as Markdown."""
    seeds = [seed for each in results.seeds.values() for seed in each]
    by_workload = {name: [name] for name in WORKLOADS if name in results.counts}
    begun = f"Begun {results.created}, revision {' and '.join(results.revisions)}, driver {results.driver}"
    which = f"seeds {min(seeds)} to {max(seeds)}"
    runs = f"{which}; {len(seeds):,} runs of real processes, looked at unchanged too"
    parts = [
        "# What the checkers catch",
        f"```\n{' '.join(results.command)}\n```",
        listed((begun, *results.surroundings, runs)),
        summary(results),
        "## Each workload",
        *_tables(results, by_workload),
        "## Not applicable",
        listed(_reasons()),
        "## Not caught, or not named",
        *([] if results.misses else ["Nothing."]),
        *(f"{what}:\n{listed(texts[:3])}" for what, texts in results.misses.items()),
    ]
    return "\n\n".join(parts) + "\n"


def summary(results: Results) -> str:
    """Return a table for each level of verification, with a row for each experiment."""
    by_experiment: dict[str, list[str]] = {}
    for name in (name for name in WORKLOADS if name in results.counts):
        by_experiment.setdefault(name.split(", ")[0], []).append(name)
    return "\n\n".join((EXPLAINED, *_tables(results, by_experiment)))


def _tables(results: Results, groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield, for each level, a table with a row for each group of workloads, and for all together."""
    changes, every = (CLEAN, *ROWS, *BYTES), list(results.counts)
    for level in LEVELS:
        rows = [
            (name, *(_cell(*results.sum(workloads, change, level)) for change in changes))
            for name, workloads in {**groups, "all": every}.items()
        ]
        rows.append(("95 %", *(_interval(*results.sum(every, change, level)) for change in changes)))
        table = tabulate(rows, ("", *changes), tablefmt="pipe", disable_numparse=True)
        yield f"`--verify {level}`:\n\n{table}"


def _cell(tried: int, caught: int, named: int) -> str:
    return f"{caught}/{tried}{f' ({named})' if named < caught else ''}" if tried else "n/a"


def _interval(tried: int, caught: int, _: int) -> str:
    low, high = clopper_pearson(caught, tried)
    return f"{100 * low:.1f} to {high:.1%}" if tried else "n/a"


def _reasons() -> Iterator[str]:
    """Yield why some changes can't be made to the files of some workloads."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for workload in WORKLOADS.values():
        for change, why in workload.changes.items():
            if isinstance(why, str):
                reasons.setdefault((change, why), []).append(workload.name.split(", ")[0])
    for (change, why), names in reasons.items():
        yield f"{change}: {why} ({', '.join(dict.fromkeys(names))})"


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code: 0, 2 or 130, as the other benchmarks do."""
    parser = command("mutations", mutations.__doc__)
    add = parser.add_argument
    add("--seeds", type=positive, default=100, help="runs of each workload (default: 100)")
    add("--only", default="", help="workloads whose name begins like this (default: all)")
    add("--driver", default="sqlite3", choices=("sqlite3", "apsw"), help="who verifies (default: sqlite3)")
    add("--minutes", type=float, help="begin no run after so long (default: all of them)")
    add("--dir", type=folder, default=Path(), help="where the databases go (default: here)")
    given = parser.parse_args(arguments)
    try:
        results = kept(given.output.with_suffix(".json"), given.driver)
    except ValueError as error:
        parser.error(str(error))
    _describe(results, arguments)
    begun = time.monotonic()
    try:
        for workload, seed in _to_come(results, given.seeds, given.only):
            if given.minutes and time.monotonic() - begun > 60 * given.minutes:
                break
            with TemporaryDirectory(dir=given.dir, prefix="sqlstress-benchmarks-") as own:
                trial = workload.run(seed, Path(own), given.driver)
                results.add(workload.name, seed, try_all(workload, trial, seed))
    except KeyboardInterrupt:
        print("interrupted; what was tried is kept", file=sys.stderr)
        return 130
    finally:
        if results.counts:
            write(given.output, markdown(results), asdict(results))
    print(f"{summary(results)}\n")
    left = sum(1 for _ in _to_come(results, given.seeds, given.only))
    print(f"{left} runs are left: give the command once more" if left else "all seeds are done")
    return 0


def _describe(results: Results, arguments: list[str]) -> None:
    if not results.counts:
        results.created = datetime.now(UTC).isoformat(timespec="seconds")
    results.revisions = tuple(dict.fromkeys((*results.revisions, revision() or "unknown")))
    machine, build = host.describe(), TARGET.describe(results.driver)
    results.command = ("python", "-m", "benchmarks", "mutations", *map(shlex.quote, arguments))
    results.surroundings = (
        f"{machine.system} {machine.release}, {machine.machine}, {machine.python}",
        f"{build.driver_version}, SQLite {build.version} ({build.source_id})",
    )


def _to_come(results: Results, seeds: int, only: str) -> Iterator[tuple[Workload, int]]:
    """Yield what is still to be tried, so that all workloads come to their ends together."""
    for seed in range(seeds):
        for name, workload in WORKLOADS.items():
            if name.startswith(only) and seed not in results.seeds.get(name, ()):
                yield workload, seed
