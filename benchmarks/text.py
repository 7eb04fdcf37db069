"""A document of results as text: Markdown for a file, plain tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tabulate import tabulate

from benchmarks.results import AT_LEAST, Comparison, Document, Row, Section
from benchmarks.surroundings import build_lines, host_lines
from sqlstress.report import Environment


def table(section: Section, style: str) -> str:
    """Return a section's rows as a table in one of tabulate's styles."""
    columns: dict[str, None] = {}
    lines = []
    for row in section.rows:
        line = _cells(row)
        columns.update(dict.fromkeys(line))
        lines.append(line)
    heads = [*(name for name in columns if name), ""]
    aligned = (
        ["left" if head in section.rows[0].labels or not head else "right" for head in heads] if lines else []
    )
    cells = [[line.get(head, "") for head in heads] for line in lines]
    return tabulate(cells, heads, tablefmt=style, colalign=aligned or None, disable_numparse=True)


def _cells(row: Row) -> dict[str, str]:
    """Return a row's cells by column; the column without a name says what is wrong."""
    line = dict(row.labels)
    line.update({name: number(value) for name, value in row.figures.items()})
    for comparison in row.comparisons:
        line[comparison.name] = _spread(comparison)
        if comparison.target is not None:
            line[f"{comparison.name}, target"] = _target(comparison)
    line[""] = "FAILED" if row.error else "short" if row.short else ""
    return line


def _spread(comparison: Comparison) -> str:
    found = comparison.spread
    return f"{number(found.median)} ({number(found.low)}-{number(found.high)})"


def _target(comparison: Comparison) -> str:
    return f"{'≥' if comparison.bound == AT_LEAST else '≤'} {number(comparison.target or 0)}"


def number(value: float) -> str:
    """Write a figure with the digits that matter: 12,345 and 12.3 and 0.87."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def summary(section: Section) -> str:
    """Return a sentence: how many cells reach their targets."""
    judged = [row for row in section.rows if row.error or any(c.target is not None for c in row.comparisons)]
    short = sum(row.short for row in judged)
    if not judged:
        return "No targets are set here."
    return f"{len(judged) - short} of {len(judged)} cells reach their targets" + (
        f"; {short} fall short." if short else "."
    )


def parts(section: Section, style: str) -> list[str]:
    """Return what follows a section's heading: notes, table, why cells failed, summary."""
    failures = dict.fromkeys(f"FAILED: {row.error}" for row in section.rows if row.error)
    return [*section.notes, table(section, style), *failures, summary(section)]


def markdown(document: Document) -> str:
    """Return the whole document as Markdown."""
    texts = ["# Benchmarks of sqlstress", f"```\n{' '.join(document.command)}\n```", *_fingerprint(document)]
    for section in document.sections:
        texts += [f"## {section.name}: {section.title}", *parts(section, "pipe")]
    return "\n\n".join(texts) + "\n"


def plain(document: Document) -> dict[str, Any]:
    """Return the document as what JSON can hold, with medians and verdicts beside the samples."""
    found = asdict(document)
    for section, kept in zip(found["sections"], document.sections, strict=True):
        for row, source in zip(section["rows"], kept.rows, strict=True):
            row["short"] = source.short
            for comparison, origin in zip(row["comparisons"], source.comparisons, strict=True):
                comparison |= asdict(origin.spread) | {"met": origin.met}
    return found


def _fingerprint(document: Document) -> Iterator[str]:
    environment = document.environment
    lines = [
        f"Measured {document.created}, revision {document.revision or 'unknown'}.",
        *host_lines(environment),
        f"load average of the last minute when it began: {document.load_average:.1f}",
        *build_lines(environment),
        *([f"C: {document.compiler}"] if document.compiler else []),
    ]
    yield "\n".join(f"- {line}" for line in lines)
    yield from _warnings(environment)


def _warnings(environment: Environment) -> Iterator[str]:
    for warning in environment.warnings:
        if warning.serious:
            yield f"**{warning.code}**: {warning.text}"
