"""sqlstress measured against its limit and its peers.

    python -m benchmarks limit                                   against a C loop
    python -m benchmarks sql                                     TPC-B's transaction, against a C loop
    python -m benchmarks pgbench                                 PostgreSQL, against pgbench
    python -m benchmarks published                               against the published loop
    python -m benchmarks harness                                 the harness's own cost
    python -m benchmarks fair                                    --busy fair against the default
    python -m benchmarks memory                                  memory and time to start
    python -m benchmarks profile                                 where an operation's time goes
    python -m benchmarks where                                   what --where costs
    python -m benchmarks endurance --output benchmarks/results/endurance.md
                                                                 many workers, files, keys; ten minutes
    python -m benchmarks gate --output benchmarks/results/gate.md
                                                                 how often `sqlstress ab` is wrong
    python -m benchmarks limits --output benchmarks/results/limits.md
                                                                 does `sqlstress limit` agree with itself
    python -m benchmarks tune --output benchmarks/results/tune-simulated.md
                                                                 how near `sqlstress tune` comes to the best
    python -m benchmarks mutations --output benchmarks/results/mutations.md
                                                                 what the verdicts catch
    python -m benchmarks fleet --output benchmarks/results/fleet.md
                                                                 what a fleet takes, and loses
    python -m benchmarks mutants                                 which changes of the code the tests notice
    python -m benchmarks all --output benchmarks/results/NAME.md

Run from the checkout. Arms are measured side by side, in pairs, in the order ABBA; ratios are the
median of the pairs with the smallest and the largest. --output writes Markdown and JSON after every
cell, so that an interrupted run loses nothing. Exit codes: 0 measured (whether or not a target is
reached), 2 usage, 4 a cell could not be measured, 130 interrupted.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks import climit_build, text
from benchmarks.bench import Bench
from benchmarks.loops import LoopFailure
from benchmarks.options import APART, STUDIES, options, parser
from benchmarks.results import Document, Plan, Row, Section, Task
from benchmarks.surroundings import revision
from benchmarks.tool import Tool, ToolFailure
from sqlstress.report import write_atomically


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code."""
    if arguments[:1] in (["gate"], ["fleet"], ["limits"], ["mutations"], ["mutants"], ["tune"]):
        # Workers import the main module again: this one would make each of their starts longer.
        return subprocess.call([sys.executable, "-m", f"benchmarks.{arguments[0]}", *arguments[1:]])
    given = parser().parse_args(arguments)
    asked = options(given)
    names = tuple(name for name in STUDIES if name not in APART) if given.study == "all" else (given.study,)
    try:
        with TemporaryDirectory(
            dir=given.dir, prefix="sqlstress-benchmarks-", ignore_cleanup_errors=True
        ) as own:
            bench = Bench(asked, Path(own).resolve(), Tool(Path(own).resolve()))
            document = _document(arguments, bench, names)
            for name in names:
                _measure(name, bench, document, given.output)
    except KeyboardInterrupt:
        print("interrupted; what was measured is kept where --output was given", file=sys.stderr)
        return 130
    except (ToolFailure, OSError) as error:
        print(error, file=sys.stderr)
        return 4
    return 4 if document.failed else 0


def _document(arguments: list[str], bench: Bench, names: tuple[str, ...]) -> Document:
    drivers = {
        "published": ("sqlite3",),
        "harness": ("sqlite3",),
        "sql": ("sqlite3",),
        "pgbench": ("sqlite3",),
    }
    needed = dict.fromkeys(driver for name in names for driver in drivers.get(name, bench.options.drivers))
    return Document(
        command=("python", "-m", "benchmarks", *map(shlex.quote, arguments)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        revision=revision(),
        compiler=_compiler() if {"limit", "sql"} & set(names) else "",
        load_average=psutil.getloadavg()[0],
        environment=bench.tool.fingerprint(tuple(needed)),
    )


def _measure(name: str, bench: Bench, document: Document, output: Path | None) -> None:
    plan = STUDIES[name](bench)
    section = Section(name, plan.title, plan.notes)
    document.sections.append(section)
    try:
        _fill(section, plan, document, output)
    finally:
        if section.rows or not plan.tasks:
            print("\n".join(["", f"{name}: {plan.title}", *text.parts(section, "simple")]))


def _fill(section: Section, plan: Plan, document: Document, output: Path | None) -> None:
    begun = time.monotonic()
    for index, task in enumerate(plan.tasks):
        _say(f"{section.name} {index + 1}/{len(plan.tasks)} {' '.join(task.labels.values())} …", "")
        row = _run(task)
        left = (time.monotonic() - begun) / (index + 1) * (len(plan.tasks) - index - 1)
        _say(f" {_outcome(row)} ({left:.0f} s left)")
        section.rows.append(row)
        if output:
            _write(document, output)


def _run(task: Task) -> Row:
    try:
        return task.run()
    except (ToolFailure, LoopFailure, ValueError, OSError) as error:
        return Row(task.labels, error=str(error))


def _outcome(row: Row) -> str:
    if row.error:
        return f"FAILED: {row.error}"
    return ", ".join(f"{c.name} {text.number(c.spread.median)}" for c in row.comparisons) + (
        " short" if row.short else ""
    )


def _write(document: Document, output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(output.with_suffix(".md"), text.markdown(document))
    write_atomically(output.with_suffix(".json"), json.dumps(text.plain(document), indent=1) + "\n")


def _compiler() -> str:
    try:
        return " ".join((climit_build.compiler_version(), *climit_build.FLAGS))
    except climit_build.Unavailable:
        return ""


def _say(words: str, end: str = "\n") -> None:
    print(words, end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
