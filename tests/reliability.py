"""reports/reliability.md: which fault was injected by which test, with which outcome.

    python -m tests.reliability [PATH ...]

runs the tests marked with `fault` (those marked `long` too) and writes the page from what became of
them; with paths, only those tests, and the others count as they last ran. Tests with the same phrases share
a row. With `--check` nothing is
run: it says whether the page has the rows that the markers ask for.
"""

import platform
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "reports" / "reliability.md"

AREAS = {
    "workers": "Workers, and the processes beside them",
    "parent": "The program killed",
    "stop": "Ctrl-C, signals, closed terminals and streams",
    "resources": "Disk, memory, descriptors, folders and names",
    "database": "The database harmed or held by a stranger",
    "time": "The clock, and a machine that sleeps",
    "scale": "Scale",
    "input": "Hostile input",
    "crash": "Process death under load",
    "power": "Power loss",
    "checkers": "Checkers",
}
"""Headings, by the `area` of a marker."""

INTRODUCTION = """# Reliability: which faults are injected, and what happens

Tests inject each of these faults for real. `python -m tests.reliability` writes this page from the tests that
ran, if all of them passed. The last column shows how many passed, with links to the tests.

After every fault sqlstress prints a message of one or two lines, never a traceback, and keeps the report of
what was measured so far. None of its processes and files remain; after a SIGKILL the next start removes the
files. It never changes files of the user. *At any moment* means during examination, preparation, start,
measurement, verification, saving or output. [Exit codes](../docs/report.md#exit-codes)."""
HEADER = ("| injected | outcome | passed |", "|---|---|---|")
_ROW = re.compile(r"\| (.*) \| (.*) \| (\[.*) \|")
_TEST = re.compile(r'\[([^\]]*)\]\(\.\./(\S+) "(\w+)"\)')
_RUN = re.compile(r"(\w+), ([\d-]+)(?: to ([\d-]+))?")


@dataclass(frozen=True, slots=True)
class Fault:
    """A marker and the test that carries it."""

    area: str
    injected: str
    outcome: str
    test: str
    """`tests/engine/test_faults.py::test_name`, without parameters."""

    def __post_init__(self) -> None:
        if self.area not in AREAS:
            raise ValueError(f"{self.test}: area={self.area!r} is none of {', '.join(AREAS)}")
        if not (self.injected and self.outcome) or any(
            mark in self.injected + self.outcome for mark in "|\n"
        ):
            raise ValueError(f"{self.test}: injected and outcome are short phrases, without bars")

    def link(self, result: str) -> str:
        """Return a link to its test that shows how many cases passed."""
        file, name = self.test.split("::", 1)
        return f'[{result}](../{file} "{name}")'


class Result(NamedTuple):
    """Result of the tests of a fault."""

    passed: str
    """Number of passed tests; then numbers of others with the reason: "3, 1 skipped: no such signal here"."""
    where: str
    """The system and the day: "Linux, 2026-11-26"; of several runs "Linux, 2026-11-21 to 2026-11-26"."""


Results = Mapping[Fault, Result]


@dataclass(eq=False)
class Watch:
    """A pytest plugin that records the marked tests and their results."""

    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """Faults by the test's id with its parameters, in the order of the source."""
    ended: dict[str, str] = field(default_factory=dict)
    """Results by the test's id: "passed", or "skipped: " and the reason."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in sorted(session.items, key=lambda item: (item.location[0], item.location[1] or 0)):
            test = item.nodeid.partition("[")[0]
            self.faults[item.nodeid] = [
                Fault(test=test, **mark.kwargs) for mark in item.iter_markers("fault")
            ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            self.ended[report.nodeid] = f"skipped: {reason.removeprefix('Skipped: ')}"
        elif report.when == "call" and report.passed:
            self.ended[report.nodeid] = "passed"

    def cases(self) -> Counter[Fault]:
        """Return the number of tests of each fault."""
        return Counter(fault for faults in self.faults.values() for fault in faults)

    def results(self) -> Iterator[tuple[Fault, str]]:
        """Yield each fault with the result of its tests: "3, 1 skipped: no such signal here"."""
        for fault in self.cases():
            results = Counter(self.ended[test] for test, faults in self.faults.items() if fault in faults)
            passed = results.pop("passed", 0)
            yield (
                fault,
                ", ".join([f"{passed}", *(f"{count} {why}" for why, count in sorted(results.items()))]),
            )


def watch(paths: Sequence[str | Path], *options: str) -> Watch:
    """Run pytest over the marked tests. Raises SystemExit if a test fails or cannot be collected."""
    plugin = Watch()
    code = pytest.main(
        ["-n0", "-m", "fault", "-p", "no:cacheprovider", *options, *map(str, paths)], plugins=[plugin]
    )
    if code != pytest.ExitCode.OK:
        raise SystemExit(f"{PAGE.name} is not written: pytest ended with {code!r}")
    return plugin


def marked() -> list[Path]:
    """Return the files with marked tests: collecting all other files would take seconds."""
    files = sorted(ROOT.glob("tests/**/test_*.py"))
    return [path for path in files if "fault(" in path.read_text(encoding="utf-8")]


def page(results: Results) -> str:
    """Return reports/reliability.md."""
    parts = [INTRODUCTION]
    for area, heading in AREAS.items():
        links: dict[tuple[str, str], list[str]] = defaultdict(list)
        for fault, result in results.items():
            if fault.area == area:
                links[fault.injected, fault.outcome].append(fault.link(result.passed))
        rows = [
            f"| {injected} | {outcome} | {', '.join(tests)} |" for (injected, outcome), tests in links.items()
        ]
        if rows:
            where = _together(result.where for fault, result in results.items() if fault.area == area)
            parts += [f"## {heading}", f"Run on {where}.", "\n".join([*HEADER, *rows])]
    return "\n\n".join(parts) + "\n"


def _together(runs: Iterable[str]) -> str:
    """Return the systems and days of several runs: "Linux, 2026-11-21 to 2026-11-26"."""
    days: dict[str, set[str]] = defaultdict(set)
    for system, first, last in _RUN.findall(" ".join(runs)):
        days[system] |= {first, last or first}
    spans = ((system, min(found), max(found)) for system, found in sorted(days.items()))
    return "; ".join(f"{system}, {first}{f' to {last}' * (last > first)}" for system, first, last in spans)


def read(text: str) -> dict[Fault, Result]:
    """Return the tests of a page, each with its section's runs."""
    found = {}
    for area, heading in AREAS.items():
        section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        where = section.strip().partition("\n")[0].removeprefix("Run on ").removesuffix(".")
        for injected, outcome, tests in _ROW.findall(section):
            for passed, file, name in _TEST.findall(tests):
                found[Fault(area, injected, outcome, f"{file}::{name}")] = Result(passed, where)
    return found


def merged(wanted: Counter[Fault], ran: Watch, before: Results, where: str) -> dict[Fault, Result]:
    """Return the result of each wanted fault that has one: the new result, or else the previous result.

    A fault has a new result only if all its tests ran now.
    """
    new = {
        fault: Result(passed, where) for fault, passed in ran.results() if ran.cases()[fault] == wanted[fault]
    }
    known = {**before, **new}
    return {fault: known[fault] for fault in wanted if fault in known}


def difference(wanted: Counter[Fault], text: str) -> list[str]:
    """Return the rows that the page lacks (+) and those it has in excess (-), a line each."""
    shown = read(text)
    lines = [f"- {fault}" for fault in shown if fault not in wanted]
    return [*lines, *(f"+ {fault}" for fault in wanted if fault not in shown)]


def main(arguments: Sequence[str]) -> int:
    """Write the page, or check it; return the exit code."""
    wanted = watch(marked(), "--collect-only", "-qq").cases()
    if list(arguments) == ["--check"]:
        lines = difference(wanted, PAGE.read_text(encoding="utf-8"))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return 1 if lines else 0
    where = f"{platform.system()}, {datetime.now(UTC):%Y-%m-%d}"
    ran = watch(arguments or marked())
    results = merged(wanted, ran, read(PAGE.read_text(encoding="utf-8")), where)
    PAGE.write_text(page(results), encoding="utf-8", newline="\n")
    if missing := sorted({fault.test for fault in wanted if fault not in results}):
        raise SystemExit(f"{PAGE.name} lacks rows: run also {' '.join(missing)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
