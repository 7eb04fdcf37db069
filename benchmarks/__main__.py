"""sqlstress measured against its limit and its peers.

    python -m benchmarks --help
    python -m benchmarks limit
    python -m benchmarks all --output benchmarks/results/NAME.md

Run from the checkout. Arms are measured side by side, in pairs, in the order ABBA; ratios are the
median of the pairs with the smallest and the largest. --output writes Markdown and JSON after every
cell, so that an interrupted run loses nothing. Exit codes: 0 measured (whether or not a target is
reached), 2 usage, 4 a cell could not be measured, 130 interrupted.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil

from benchmarks import (
    climit_build,
    harness,
    limit,
    published,
    sql,
)
from benchmarks import where as price_of_where
from benchmarks.bench import DRIVERS, LOADS, Bench, Options, Tool, ToolFailure
from benchmarks.document import Document, Plan, Row, Section, number, revision, write
from benchmarks.loops import LoopFailure
from benchmarks.options import counts, duration, folder, positive

CHOICE: dict[str, Any] = {"action": "append", "default": [], "help": "repeatable (default: the study's own)"}
OPTIONS: dict[str, dict[str, Any]] = {
    "repeats": {"type": positive, "default": 5, "help": "pairs for each cell (default: 5)"},
    "duration": {"type": duration, "default": 1.0, "help": "the window (default: 1s)", "dest": "duration_s"},
    "warmup": {"type": duration, "default": 0.3, "help": "load before (default: 300ms)", "dest": "warmup_s"},
    "driver": {**CHOICE, "choices": DRIVERS, "dest": "drivers"},
    "load": {**CHOICE, "choices": [*LOADS], "dest": "loads"},
    "synchronous": {**CHOICE, "choices": ("full", "normal", "off")},
    "arm": {**CHOICE, "choices": limit.EVERY_ARM, "dest": "arms"},
    "concurrency": {"type": counts, "default": (), "metavar": "N,N", "help": "numbers of processes"},
    "seed": {"type": int, "default": 1, "help": "of the first round (default: 1)"},
    "dir": {"type": folder, "default": Path(), "help": "where the databases go (default: here)"},
    "output": {"type": Path, "metavar": "NAME.md", "help": "write NAME.md and NAME.json too"},
}


class Study(NamedTuple):
    """A study, measured cell by cell, with the options that it uses."""

    plan: Callable[[Bench], Plan]
    title: str
    options: str
    drivers: tuple[str, ...] = ()
    """Fixed drivers; empty if the study uses the drivers of --driver."""


WINDOW = "repeats duration warmup"
STUDIES = {
    "limit": Study(limit.plan, limit.TITLE, f"{WINDOW} driver load concurrency synchronous arm"),
    "published": Study(published.plan, published.TITLE, "repeats concurrency", ("sqlite3",)),
    "harness": Study(harness.plan, harness.TITLE, f"{WINDOW} load", ("sqlite3",)),
    "sql": Study(sql.plan, sql.TITLE, f"{WINDOW} synchronous", ("sqlite3",)),
    "where": Study(price_of_where.plan, price_of_where.TITLE, "repeats driver load"),
}
ELSEWHERE = {
    "hunt": "how soon a hunt finds what is there",
    "mutants": "which changes of the code the tests notice",
}
"""Commands with a separate command line and a small main module, because workers import it again."""


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit code."""
    if arguments and arguments[0] in ELSEWHERE:
        return subprocess.call([sys.executable, "-m", f"benchmarks.{arguments[0]}", *arguments[1:]])
    given = _parser().parse_args(arguments)
    names = [*STUDIES] if given.study == "all" else [given.study]
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(given).items()
        if value != [] and name in Options.__dataclass_fields__
    }
    try:
        with TemporaryDirectory(
            dir=given.dir, prefix="sqlstress-benchmarks-", ignore_cleanup_errors=True
        ) as own:
            place = Path(own).resolve()
            bench = Bench(Options(**options), place, Tool(place))
            document = _document(arguments, bench, names)
            for name in names:
                _measure(name, bench, document, given.output)
    except KeyboardInterrupt:
        print("interrupted; what was measured is kept where --output was given", file=sys.stderr)
        return 130
    except (ToolFailure, OSError) as error:
        print(error, file=sys.stderr)
        return 4
    return 4 if any(row.error for section in document.sections for row in section.rows) else 0


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure sqlstress side by side with its limit and its peers, and print ratios.",
    )
    commands = found.add_subparsers(dest="study", required=True, metavar="COMMAND")
    every = {**STUDIES, "all": Study(limit.plan, "all of them", " ".join(OPTIONS))}
    for name, study in every.items():
        command = commands.add_parser(name, help=study.title, description=study.title)
        for option in dict.fromkeys((*study.options.split(), "seed", "dir", "output")):
            command.add_argument(f"--{option}", **OPTIONS[option])
    for name, about in ELSEWHERE.items():
        commands.add_parser(name, help=about)
    return found


def _document(arguments: Sequence[str], bench: Bench, names: Sequence[str]) -> Document:
    drivers = [
        driver for name in names for driver in STUDIES[name].drivers or bench.options.drivers or DRIVERS
    ]
    try:
        compiler = climit_build.compiler_version() if {"limit", "sql"} & set(names) else ""
    except climit_build.Unavailable:
        compiler = ""
    return Document(
        command=("python", "-m", "benchmarks", *map(shlex.quote, arguments)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        revision=revision(),
        compiler=compiler,
        load_average=psutil.getloadavg()[0],
        environment=bench.tool.fingerprint((*dict.fromkeys(drivers),)),
    )


def _measure(name: str, bench: Bench, document: Document, output: Path | None) -> None:
    try:
        plan = STUDIES[name].plan(bench)
    except climit_build.Unavailable as why:
        plan = Plan((f"Nothing can be measured: {why}.",), (), Row)
    section = Section(name, STUDIES[name].title, plan.notes)
    document.sections.append(section)
    begun = time.monotonic()
    try:
        for index, cell in enumerate(plan.cells, 1):
            _say(f"{name} {index}/{len(plan.cells)} {' '.join(cell.values())} …", "")
            try:
                row = plan.measure(cell)
            except (ToolFailure, LoopFailure, ValueError, OSError) as error:
                row = Row(cell, error=str(error))
            left = (time.monotonic() - begun) / index * (len(plan.cells) - index)
            figures = ", ".join(f"{c.name} {number(c.spread()[0])}" for c in row.comparisons)
            told = f"FAILED: {row.error}" if row.error else figures + " short" * row.short()
            _say(f" {told} ({left:.0f} s left)")
            section.rows.append(row)
            if output:
                write(output, document.markdown(), document.plain())
    finally:
        if section.rows or not plan.cells:
            print("\n".join(["", f"{name}: {section.title}", *section.parts("simple")]))


def _say(words: str, end: str = "\n") -> None:
    print(words, end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
