"""The command line of the mutations."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.mutations import __doc__ as about
from benchmarks.mutations.catalogue import WORKLOADS, Workload
from benchmarks.mutations.experiment import try_all
from benchmarks.mutations.results import Results, kept
from benchmarks.mutations.table import markdown, summary
from benchmarks.options import folder, positive
from benchmarks.surroundings import revision
from sqlstress.machine import host
from sqlstress.report import write_atomically
from sqlstress.targets.sqlite.library import describe


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code: 0, 2 or 130, as the other benchmarks do."""
    given = _parser().parse_args(arguments)
    output: Path = given.output
    try:
        results = kept(output.with_suffix(".json"), given.driver)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
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
            results.save(output.with_suffix(".json"))
            write_atomically(output.with_suffix(".md"), markdown(results))
    print(f"{summary(results)}\n")
    left = sum(1 for _ in _to_come(results, given.seeds, given.only))
    print(f"{left} runs are left: give the command once more" if left else "all seeds are done")
    return 0


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks mutations",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = found.add_argument
    add("--seeds", type=positive, default=100, help="runs of each workload (default: 100)")
    add("--only", default="", help="workloads whose name begins like this (default: all)")
    add("--driver", default="sqlite3", choices=("sqlite3", "apsw"), help="who verifies (default: sqlite3)")
    add("--minutes", type=float, help="begin no run after so long (default: all of them)")
    add("--dir", type=folder, default=Path(), help="where the databases go (default: here)")
    add("--output", type=Path, required=True, metavar="NAME.md", help="write, and go on from, NAME.json")
    return found


def _describe(results: Results, arguments: list[str]) -> None:
    if not results.counts:
        results.created = datetime.now(UTC).isoformat(timespec="seconds")
    results.revisions = tuple(dict.fromkeys((*results.revisions, revision() or "unknown")))
    machine, build = host.describe(), describe(results.driver)
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
