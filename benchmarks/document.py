"""Measurement and output of benchmarks: arms in turns, rows with their targets, Markdown and JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from tabulate import tabulate

from sqlstress.report import Environment, write_atomically

CHECKOUT = Path(__file__).parents[1]
AT_LEAST, AT_MOST = "at least", "at most"
T = TypeVar("T")


def measure(arms: Mapping[str, Callable[[int], T]], repeats: int) -> dict[str, list[T]]:
    """Measure every arm once in each round, forwards, backwards, forwards, …; return its results by round.

    The order spreads drift (heat, a neighbour on the machine) evenly over the arms. An arm is a function of
    the round's number, from which it takes its seed.
    """
    results: dict[str, list[T]] = {name: [] for name in arms}
    for index in range(repeats):
        for name in [*arms][:: -1 if index % 2 else 1]:
            results[name].append(arms[name](index))
    return results


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> tuple[float, ...]:
    """Return the ratio of each pair. Raises ValueError if the numbers differ or a denominator is 0."""
    if not all(denominators):
        raise ValueError("an arm did nothing inside the window: there is no ratio to it")
    return tuple(above / below for above, below in zip(numerators, denominators, strict=True))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of every pair, and its target."""

    name: str
    values: tuple[float, ...]
    """Values of the pairs, by round."""
    target: float | None = None
    bound: str = AT_LEAST
    """Direction of the target: at least or at most."""

    def spread(self) -> tuple[float, float, float]:
        """Return the median of the pairs, the smallest and the largest."""
        return median(self.values), min(self.values), max(self.values)

    def met(self) -> bool | None:
        """Return whether the median reaches the target; None without one."""
        if self.target is None:
            return None
        middle = median(self.values)
        return middle >= self.target if self.bound == AT_LEAST else middle <= self.target


@dataclass(frozen=True, slots=True)
class Row:
    """One cell measured."""

    labels: dict[str, str]
    """Labels of the cell: column → value."""
    figures: dict[str, float] = field(default_factory=dict)
    """Medians, for context: column with its unit → value."""
    comparisons: tuple[Comparison, ...] = ()
    samples: dict[str, list[float]] = field(default_factory=dict)
    """All measurements, by round."""
    error: str | None = None
    """Reason why the cell could not be measured, or None."""

    def short(self) -> bool:
        """Return whether a target is missed, or nothing was measured."""
        return self.error is not None or any(comparison.met() is False for comparison in self.comparisons)


def row_of_rates(
    labels: dict[str, str], tps: Mapping[str, list[float]], *compared: tuple[str, str, float | None]
) -> Row:
    """Return a row of the arms' rates per second, with ratios of some: (arm, arm to divide by, target)."""
    samples = {f"{name} TPS": values for name, values in tps.items()}
    comparisons = (
        Comparison(f"{arm}/{base}", ratios(tps[arm], tps[base]), target) for arm, base, target in compared
    )
    return Row(labels, {name: median(values) for name, values in samples.items()}, (*comparisons,), samples)


def grid(**columns: Iterable[object]) -> list[dict[str, str]]:
    """Return the labels of cells: all combinations of the columns' values; the last column varies fastest."""
    return [dict(zip(columns, map(str, cell), strict=True)) for cell in product(*columns.values())]


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a study: its cells, and the function that measures a cell."""

    notes: tuple[str, ...]
    """Notes on reading the table, and on cells that cannot be measured on this system."""
    cells: Sequence[dict[str, str]]
    """Labels: column → value."""
    measure: Callable[[dict[str, str]], Row]


@dataclass(slots=True)
class Section:
    """Results of a study."""

    name: str
    title: str
    notes: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)

    def parts(self, style: str) -> list[str]:
        """Return the paragraphs below the heading, with a table in one of tabulate's styles."""
        failures = dict.fromkeys(f"FAILED: {row.error}" for row in self.rows if row.error)
        return [*self.notes, self._table(style), *failures, self._summary()]

    def _table(self, style: str) -> str:
        lines = [_cells(row) for row in self.rows]
        heads = [*(head for head in dict.fromkeys(name for line in lines for name in line) if head), ""]
        labels = self.rows[0].labels if lines else {}
        aligned = ["left" if head in labels or not head else "right" for head in heads]
        cells = [[line.get(head, "") for head in heads] for line in lines]
        return tabulate(
            cells, heads, tablefmt=style, colalign=(lines and aligned) or None, disable_numparse=True
        )

    def _summary(self) -> str:
        """Return a sentence on the number of cells that reach their targets."""
        judged = [row for row in self.rows if row.error or any(c.target is not None for c in row.comparisons)]
        if not judged:
            return "No targets are set here."
        short = sum(row.short() for row in judged)
        reached = f"{len(judged) - short} of {len(judged)} cells reach their targets"
        return f"{reached}; {short} fall short." if short else f"{reached}."


def _cells(row: Row) -> dict[str, str]:
    """Return a row's cells by column; the column without a name marks failures and missed targets."""
    line = {**row.labels, **{name: number(value) for name, value in row.figures.items()}}
    for comparison in row.comparisons:
        middle, low, high = map(number, comparison.spread())
        line[comparison.name] = f"{middle} ({low}-{high})"
        if comparison.target is not None:
            sign = "≥" if comparison.bound == AT_LEAST else "≤"
            line[f"{comparison.name}, target"] = f"{sign} {number(comparison.target)}"
    return {**line, "": "FAILED" if row.error else "short" if row.short() else ""}


def number(value: float) -> str:
    """Write a figure with the digits that matter: 12,345 and 12.3 and 0.87."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


@dataclass(slots=True)
class Document:
    """The document that is written to --output."""

    command: tuple[str, ...]
    """The command line, from the checkout."""
    created: str
    """Time of the start: ISO 8601, UTC."""
    revision: str
    compiler: str
    """The C compiler and its flags; empty if no compiler was used."""
    load_average: float
    """Load average of the minute before the start; over 1 if other programs were running."""
    environment: Environment
    sections: list[Section] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the whole document."""
        facts = [
            f"Measured {self.created}, revision {self.revision or 'unknown'}.",
            *host_lines(self.environment),
            f"load average of the last minute when it began: {self.load_average:.1f}",
            *build_lines(self.environment),
            *([f"C: {self.compiler}"] if self.compiler else []),
        ]
        texts = ["# Benchmarks of sqlstress", f"```\n{' '.join(self.command)}\n```", bullet_list(facts)]
        texts += [
            f"**{warning.code}**: {warning.text}" for warning in self.environment.warnings if warning.serious
        ]
        for section in self.sections:
            texts += [f"## {section.name}: {section.title}", *section.parts("pipe")]
        return "\n\n".join(texts) + "\n"

    def plain(self) -> dict[str, Any]:
        """Return the document as JSON values, with medians and verdicts next to the samples."""
        found = asdict(self)
        for section, kept in zip(found["sections"], self.sections, strict=True):
            for row, source in zip(section["rows"], kept.rows, strict=True):
                row["short"] = source.short()
                for comparison, origin in zip(row["comparisons"], source.comparisons, strict=True):
                    comparison |= dict(zip(("median", "low", "high"), origin.spread(), strict=True))
                    comparison["met"] = origin.met()
        return found


def write(output: Path, markdown: str, plain: Any) -> None:
    """Write NAME.md, and NAME.json next to it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(output.with_suffix(".md"), markdown)
    write_atomically(output.with_suffix(".json"), json.dumps(plain, indent=1) + "\n")


def bullet_list(facts: Iterator[str] | Sequence[str]) -> str:
    """Return a list in Markdown."""
    return "\n".join(f"- {fact}" for fact in facts)


def revision() -> str:
    """Return the output of `git describe --always --dirty` for the checkout; empty outside a repository."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def host_lines(environment: Environment) -> Iterator[str]:
    """Yield the host, the file system and the cost of a sync."""
    host, files, sync = environment.host, environment.file_system, environment.sync
    assert sync and host.memory_bytes and host.sleep_1ms_ns, "a fingerprint of this machine has them"
    yield (
        f"{host.system} {host.release}, {host.machine}, {host.processor or 'processor unknown'}, "
        f"{host.cores} cores, {host.memory_bytes / 2**30:.1f} GiB, {host.python}"
    )
    yield f"a sleep of 1 ms takes {host.sleep_1ms_ns / 1e6:.2f} ms"
    yield f"{files.kind or 'file system unknown'} on {files.device} ({files.options})"
    costs = f"p50 {sync.append_p50_ns / 1e3:.0f} µs, p99 {sync.append_p99_ns / 1e3:.0f} µs"
    yield f"a sync ({sync.primitive}) costs {costs}"


def build_lines(environment: Environment) -> Iterator[str]:
    """Yield the SQLite libraries."""
    for build in environment.builds:
        yield f"{build.driver}: {build.driver_version}, SQLite {build.version} ({build.source_id})"
