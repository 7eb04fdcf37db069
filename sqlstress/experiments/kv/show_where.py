"""Where the time went, case by case: all passes together, as shares of it and in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import duration, place
from sqlstress.experiments.kv import companion_names
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.report.results import (
    BINDING,
    CHECKPOINT,
    COMMIT,
    FREE,
    HARNESS,
    HELD,
    OWN,
    PARTS,
    PROCESSOR,
    READ,
    SQLITE,
    SYNC,
    WRITE,
    Moment,
    Slowest,
    Where,
)
from sqlstress.show.blocks import Block, Column, Figure, Paragraph, count_cell, percent_cell, table_of
from sqlstress.show.case_table import FILES, PROCESSES, Cell, Row, apart_columns, rows_of
from sqlstress.show.plots import Plain, Plot, View, axis, colour, name
from sqlstress.statistics.units import NS_PER_MS

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
    companions = companion_names.names(case)
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
    table = table_of(rows_of(group), (*apart_columns(group), FILES, PROCESSES, _EACH, *_FIGURES), _LEAVING)
    yield table
    meanings = [f"{NAMES[part]}: {text}" for part, text in _MEANINGS.items() if NAMES[part] in table.headers]
    yield Paragraph(f"{'; '.join(meanings)}.{_untold(group)}")


def _untold(group: Group) -> str:
    """Return what can't be told here, as sentences."""
    found = [one for run in group.runs for one in told(run)]
    said = []
    if any(run.case.rate for run in group.runs if told(run)):
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


# What the split of the time says: what the slowest operations waited for, and what would take that away.
#
# A remedy is named where every pass supports it, and only one whose effect is measured, as docs/where.md
# says.


WORTH_SAYING = 0.05
"""Parts of less than this share are not said one by one."""
MUCH = 0.2
"""From this share on a part is worth a remedy."""
MOSTLY = 0.6
_OF_THEIR_OWN = {
    FREE: "slowest-asleep",
    CHECKPOINT: "slowest-checkpoint",
    SYNC: "slowest-sync",
    OWN: "slowest-own",
}
_OTHERS = {COMMIT: "commits", SYNC: "syncs", CHECKPOINT: "checkpoints", READ: "reads"}


def went(group: Group) -> Iterator[Finding]:
    """Yield what the slowest operations waited for, where that is worst."""
    found = [(run, each) for run in group.runs if (each := _slowest(run))]
    if not found:
        return
    run, each = max(found, key=lambda one: sum(slow.total_ns for slow in one[1]) / _count(one[1]))
    yield _waited_for(run, each)


def _slowest(run: Run) -> list[Slowest]:
    return [one.slowest for one in told(run) if one.slowest and one.slowest.total_ns]


def _count(slow: Sequence[Slowest]) -> int:
    return sum(one.operations for one in slow)


def _waited_for(run: Run, slow: Sequence[Slowest]) -> Finding:
    """Return what the slowest operations of all passes waited for, and what would take that away."""
    total = sum(one.total_ns for one in slow)
    parts, behind = Counter[str](), Counter[str]()
    for one in slow:
        parts.update(one.parts)
        behind.update(one.behind)
    found = [
        (ns, "slowest-behind", {"what": _OTHERS[what], "whose": _whose(run, slow, what)})
        for what, ns in behind.items()
        if what in _OTHERS
    ]
    found += [(parts[part], code, {}) for part, code in _OF_THEIR_OWN.items()]
    return Finding(
        "where-slowest",
        where=place(run.case),
        count=_count(slow),
        fastest_ns=min(one.fastest_ns for one in slow),
        parts=tuple(
            Finding(code, share=ns / total, **facts)
            for ns, code, facts in sorted(found, key=lambda one: one[0], reverse=True)
            if ns >= WORTH_SAYING * total
        ),
        remedies=tuple(filter(None, (remedy(run, slow) for remedy in _REMEDIES))),
    )


def _whose(run: Run, slow: Sequence[Slowest], what: str) -> str:
    """Return who held the lock: the one that did so most of the time, if there is one."""
    held: Counter[int] = Counter()
    for one in slow:
        held.update({by.process: by.ns for by in one.held_by if by.what == what})
    if not held:
        return "others"
    process, ns = held.most_common(1)[0]
    is_worker = process <= run.case.concurrency
    # The third worker of one pass is not that of another.
    if ns < MOSTLY * held.total() or (is_worker and len(slow) > 1):
        return "others"
    return f"{'' if is_worker else 'the '}{process_name(run.case, process)}"


def _always(slow: Sequence[Slowest], ns: Callable[[Slowest], int]) -> bool:
    """Return whether in every pass much of the slowest operations' time went there."""
    return all(ns(one) >= MUCH * one.total_ns for one in slow)


def _fair(run: Run, slow: Sequence[Slowest]) -> Finding | None:
    if run.case.settings.busy == "fair" or not _always(slow, lambda one: one.parts.get(FREE, 0)):
        return None
    return Finding("remedy-fair")


def _checkpointer(run: Run, slow: Sequence[Slowest]) -> Finding | None:
    own = run.case.settings.journal_mode == "wal" and run.case.spec.checkpointing is None
    if not own or not _always(slow, lambda one: one.parts.get(CHECKPOINT, 0)):
        return None
    return Finding("remedy-checkpointer")


def _fewer_syncs(run: Run, slow: Sequence[Slowest]) -> Finding | None:
    if not _always(slow, lambda one: one.parts.get(SYNC, 0) + one.behind.get(SYNC, 0)):
        return None
    ways = []
    if run.case.spec.batch == 1:
        ways.append(Finding("way-batch"))
    if run.case.settings.journal_mode == "wal" and run.case.settings.synchronous in (None, "full", "extra"):
        ways.append(Finding("way-normal"))
    return Finding("remedy-syncs", ways=tuple(ways)) if ways else None


_REMEDIES = (_fair, _checkpointer, _fewer_syncs)


# Plots of where the time went: a bar for each case, and its slowest operation as it went on.


_SPANS = {
    "wait": "waits for the lock",
    COMMIT: "commits",
    READ: "reads",
    CHECKPOINT: "checkpoints",
    SYNC: "syncs",
}
"""What is drawn, what lies above the others last."""
_WIDTHS = {"wait": 4}
_WIDTH = 11


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group that was told where its time goes."""
    runs = [run for run in group.runs if told(run)]
    if runs:
        yield _split(group, runs)
        views = [view for run in runs for view in _moments(group, run)]
        if views:
            note = (
                "What each process did meanwhile on the file of the slowest operation. Thin: waiting for its "
                "lock. Thick: holding it."
            )
            yield Plot("The slowest operation", note, tuple(views), len(views) - 1, wide=True)


def _split(group: Group, runs: Sequence[Run]) -> Plot:
    names = [name(group.place(run.case)) for run in runs]
    found = [shares(run) for run in runs]
    data: list[Plain] = [
        {
            "type": "bar",
            "name": NAMES[part],
            "orientation": "h",
            "marker": {"color": colour(number) if number < 8 else "--muted"},
            "hovertemplate": f"%{{y}}: {NAMES[part]} %{{x:.1f}}%",
            "x": [100 * own.get(part, 0.0) for own in found],
            "y": names,
        }
        for number, part in enumerate(PARTS)
        if any(part in own for own in found)
    ]
    layout = {
        "xaxis": axis("% of the time", rangemode="tozero"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "barmode": "stack",
        "height": 150 + 26 * len(runs),
    }
    note = "How the time of the processes divides, all passes together. The words: below the table."
    return Plot("Where the time goes", note, (View("", data, layout),), wide=True)


def _moments(group: Group, run: Run) -> Iterator[View]:
    found = [one.moment for one in told(run) if one.moment]
    if not found:
        return
    worst = max(found, key=lambda one: one.length_ns)
    label = f"{place(run.case)}: {duration(worst.length_ns)}"
    rows = {process: row for row, process in enumerate(_processes(worst))}
    data = [trace for number, what in enumerate(_SPANS) if (trace := _trace(worst, what, rows, number))]
    layout = {
        "xaxis": axis("ms"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "height": 130 + 26 * len(rows),
        "hovermode": "closest",
    }
    yield View(label, [_frame(worst, run.case, rows), *_named(data, run.case, rows)], layout)


def _processes(moment: Moment) -> list[int]:
    """Return whose rows are drawn: first whose operation it was."""
    others = sorted({process for process, *_ in moment.spans} - {moment.process})
    return [moment.process, *others]


def _trace(moment: Moment, what: str, rows: dict[int, int], number: int) -> Plain | None:
    own = [(process, begin, end) for process, did, begin, end in moment.spans if did == what]
    if not own:
        return None
    ends: list[tuple[float | None, int | None]] = []
    for process, begin, end in own:
        ends += [(begin / NS_PER_MS, process), (end / NS_PER_MS, process), (None, None)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": _SPANS[what],
        "x": [at for at, _ in ends],
        "y": [process for _, process in ends],
        "line": {"color": colour(number), "width": _WIDTHS.get(what, _WIDTH)},
        "hovertemplate": f"%{{y}} {_SPANS[what]}: %{{x:.3f}} ms",
    }


def _frame(moment: Moment, case: Case, rows: dict[int, int]) -> Plain:
    """Return what gives every process its row, in their order, and the axis its whole length."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [0.0 if not row else None for row in rows.values()] + [moment.length_ns / NS_PER_MS],
        "y": [_name(case, process) for process in rows] + [_name(case, moment.process)],
        "line": {"color": "transparent", "width": 1},
    }


def _named(data: Sequence[Plain], case: Case, rows: dict[int, int]) -> list[Plain]:
    return [
        {**trace, "y": [None if process is None else _name(case, process) for process in trace["y"]]}
        for trace in data
    ]


def _name(case: Case, process: int) -> str:
    return name(process_name(case, process))
