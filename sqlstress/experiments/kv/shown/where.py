"""Where the time went, case by case: all passes together, as shares of it and in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Block, Column, Paragraph
from sqlstress.display.case_table import FILES, PROCESSES, Cell, Row, apart, rows_of
from sqlstress.display.figures import Figure, count_cell, percent_cell, table_of
from sqlstress.experiments.kv import beside
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.report.where import (
    BINDING,
    CHECKPOINT,
    FREE,
    HARNESS,
    HELD,
    PARTS,
    PROCESSOR,
    SQLITE,
    SYNC,
    WRITE,
    Where,
)

NS_PER_US = 1000

HEADINGS: dict[str, tuple[str, str]] = {
    HELD: ("lock", "held"),
    FREE: ("asleep,", "free"),
    CHECKPOINT: ("check-", "point"),
    SYNC: ("", "sync"),
    WRITE: ("", "write"),
    PROCESSOR: ("pro-", "cessor"),
    SQLITE: ("", "SQLite"),
    BINDING: ("bind-", "ing"),
    HARNESS: ("har-", "ness"),
}
NAMES = {part: "".join((a.removesuffix("-"), "" if a.endswith("-") else " ", b)).strip()
         for part, (a, b) in HEADINGS.items()}  # fmt: skip
_MEANINGS = {
    HELD: "waiting for a lock that another process held",
    FREE: "asleep though it was free",
    CHECKPOINT: "checkpoints of its own",
    SYNC: "syncs beside them",
    WRITE: "writes beside them",
    PROCESSOR: "waiting for a processor, out of all the others",
    SQLITE: "SQLite's own work and reads",
    BINDING: "the driver's binding: what is left",
    HARNESS: "drawing keys, counting, proving",
}


def told(run: Run) -> list[Where]:
    """Return what the valid trials of a run tell."""
    return [trial.where for trial in run.valid if trial.where and trial.where.time_ns > 0]


def shares(run: Run) -> Mapping[str, float]:
    """Return which share of the time went into each part, all passes together."""
    found = told(run)
    total = sum(one.time_ns for one in found)
    parts: Counter[str] = Counter()
    for one in found:
        parts.update(one.parts)
    return {part: parts[part] / total for part in PARTS if all(part in one.parts for one in found)}


def process_name(case: Case, process: int) -> str:
    """Return what a process is called: "process 3", or what it is beside the workers."""
    companions = beside.names(case)
    beyond = process - case.concurrency
    return companions[beyond - 1] if 0 < beyond <= len(companions) else f"process {process}"


def blocks(group: Group) -> Iterator[Block]:
    """Yield where the time went; nothing where nobody asked."""
    if not any(told(run) for run in group.runs):
        if any(getattr(run.case.spec, "where", False) and run.valid for run in group.runs):
            yield Paragraph(
                "Where the time goes could not be told: what the processes noted contradicts itself."
            )
        return
    yield Paragraph("Where the time of an operation goes, in per cent, all passes together:")
    table = table_of(rows_of(group), (*apart(group), FILES, PROCESSES, _EACH, *_FIGURES), _LEAVING)
    yield table
    meanings = [f"{NAMES[part]}: {text}" for part, text in _MEANINGS.items() if NAMES[part] in table.headers]
    yield Paragraph(f"{'; '.join(meanings)}.{_untold(group)}")


def _untold(group: Group) -> str:
    """Return what can't be told here, as sentences."""
    found = [one for run in group.runs for one in told(run)]
    said = []
    if any(run.case.arrivals for run in group.runs if told(run)):
        said.append(" At a rate, what is left is mostly idle: no operation is due yet.")
    if any(PROCESSOR not in one.parts for one in found):
        said.append(" How long processes wait for a processor can't be told here: it is in the others.")
    least = min(one.told for one in found)
    if least < 0.995:
        said.append(f" Who held the locks is known of the last {percent_cell(least)}% of a window at least.")
    return "".join(said)


def _mean_us(row: Row) -> str | None:
    counted = [(one.where.time_ns, one.transactions) for one in row.run.valid if one.where]
    done = sum(count for _, count in counted)
    return count_cell(sum(ns for ns, _ in counted) / done / NS_PER_US) if done else None


def _share(part: str) -> Cell:
    def cell(row: Row) -> str | None:
        found = shares(row.run) if told(row.run) else {}
        return percent_cell(found[part]) if part in found else None

    return cell


_EACH: Figure[Row] = Figure(Column("mean us", ("mean", "µs")), _mean_us)
_FIGURES: tuple[Figure[Row], ...] = tuple(
    Figure(Column(NAMES[part], heading), _share(part)) for part, heading in HEADINGS.items()
)
_LEAVING = (NAMES[HARNESS], NAMES[WRITE], NAMES[BINDING])
