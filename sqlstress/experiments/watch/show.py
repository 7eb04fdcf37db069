"""How a watch is shown: a row for each process, what it did with the locks, and the locks as time went on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sqlstress.analysis.finding import Finding, Part
from sqlstress.analysis.lock_samples import length, share, share_error
from sqlstress.analysis.wording import percent, plural
from sqlstress.experiments.watch.results import CHECKPOINT, EXCLUSIVE, READ, WRITE, Process, Watch
from sqlstress.experiments.watch.watch_findings import (
    bytes_of,
    called,
    conclusion,
    findings,
    holds,
    process_at,
)
from sqlstress.report import Report
from sqlstress.report.lock_holds import Holds
from sqlstress.show.blocks import (
    DETAIL,
    NAME,
    Block,
    Column,
    Figure,
    Legend,
    Lines,
    Table,
    Verdict,
    conclusions,
    shortened,
    table_of,
)
from sqlstress.show.phrases import phrase
from sqlstress.show.plots import Plain, Plot, View, axis, line, name
from sqlstress.show.shown import ResultShown, Tile, came_of
from sqlstress.statistics.units import NS_PER_S, format_duration

MOST_ROWS = 12
"""Processes of the table; the report has them all."""
_NAME_WIDTH = 30
_JOURNALS = {"wal": "WAL", "rollback": "rollback"}


class WatchShown(ResultShown[Watch]):
    """A watch."""

    def part(self, result: Watch) -> Part:
        return Part("watch", conclusion(result), result.seconds, result.error, "watch", "Watch")

    def result_blocks(self, report: Report, result: Watch) -> Iterator[Block]:
        warnings = [f"Warning: {warning.text}" for warning in report.environment.warnings if warning.serious]
        yield Lines((*about(result), *warnings))
        if result.processes:
            table = process_table(result)
            yield table
            yield Legend(table, partial(_legend, result))
        yield Verdict(phrase(conclusion(result).finding))
        told = [*findings(result)]
        if (rest := len(result.processes) - MOST_ROWS + result.others) > 0:
            told.append(Finding("watch-rest", count=rest))
        if told:
            yield conclusions(told)

    def result_plots(self, result: Watch) -> Iterator[Plot]:
        """Yield who held the write lock, and the WAL's length, as time went on."""
        views = [view for view in (_held(result), _wal(result)) if view.data]
        if views:
            step = format_duration(result.course.step_s)
            note = f"Each point is {step}: the share of its samples with the lock, or the frames in the WAL."
            yield Plot("As time went on", note, tuple(views), wide=True)

    def tiles(self, result: Watch) -> Iterator[Tile]:
        yield came_of(conclusion(result), "watched", "from outside, without a lock")
        yield percent(share(result.write.samples, result.samples)), "of the time the write lock was held", ""
        yield phrase(length(result.write, result.asked.rate)), "the longest time without a free moment", ""
        if result.pins:
            yield plural(result.pins[0].grew_frames, "frame"), "at most behind a reader", ""

    def progress(self, result: Watch) -> str:
        return plural(result.samples, "sample")


def about(watch: Watch) -> Iterator[str]:
    """Yield what was watched, and how long its WAL was."""
    yield phrase(
        Finding(
            "watch-what",
            database=watch.database,
            took_ns=watch.seconds * NS_PER_S,
            samples=watch.samples,
            journal=_JOURNALS.get(watch.journal, watch.journal),
            commits=watch.commits,
        )
    )
    if watch.frames:
        yield phrase(
            Finding(
                "watch-wal",
                frames=watch.frames,
                size=bytes_of(watch, watch.frames),
                checkpointed=watch.checkpointed,
                file=watch.wal_bytes or None,
            )
        )


def process_table(watch: Watch) -> Table:
    """Return a row for each process, the one that held the write lock most first."""
    pins: dict[int, float] = {}
    for pin in watch.pins:
        for place in pin.processes:
            pins[place] = max(pin.seconds, pins.get(place, 0.0))
    rows = list(enumerate(watch.processes[:MOST_ROWS]))

    def percentage(lock: str) -> Figure[tuple[int, Process]]:
        heading = {
            WRITE: ("write", "lock %"),
            CHECKPOINT: ("check-", "point %"),
            EXCLUSIVE: ("exclu-", "sive %"),
            READ: ("", "read %"),
        }
        return Figure(
            Column(f"{lock} %", heading[lock]),
            lambda row: _percent(share(holds(row[1], lock).samples, watch.samples)),
        )

    figures: tuple[Figure[tuple[int, Process]], ...] = (
        Figure(Column("pid", ("", "pid"), role=NAME), lambda row: str(row[1].pid) if row[1].pid > 0 else "?"),
        Figure(
            Column("process", ("", "process"), "left", role=NAME),
            lambda row: shortened(called(row[1]), _NAME_WIDTH) or "?",
        ),
        Figure(Column("user", ("", "user"), "left", role=DETAIL), lambda row: row[1].user[:12] or None),
        Figure(
            Column("since", ("", "since"), "left", role=DETAIL),
            lambda row: row[1].started[11:16] + " ended" * row[1].gone or None,
        ),
        percentage(WRITE),
        Figure(Column("longest", ("", "longest")), lambda row: _longest(watch, holds(row[1], WRITE))),
        percentage(EXCLUSIVE),
        percentage(READ),
        Figure(
            Column("pins the WAL s", ("pins the", "WAL s")),
            lambda row: f"{pins[row[0]]:.1f}" if row[0] in pins else None,
        ),
        percentage(CHECKPOINT),
    )
    return table_of(rows, figures, ("since", "user", "checkpoint %", "exclusive %"))


def _percent(part: float) -> str | None:
    return percent(part).removesuffix("%") if part else None


def _longest(watch: Watch, of: Holds) -> str | None:
    if not of.samples:
        return None
    finding = length(of, watch.asked.rate)
    return ("<" if finding.code == "held-below" else "") + phrase(finding)


_MEANINGS = {
    "write %": "write lock: share of the samples in which nobody else could write",
    "longest": "longest: seen without a break and without a commit",
    "exclusive %": "exclusive: nobody else could read either",
    "read %": "read: share of the samples that saw it reading (of several on one snapshot, one is listed)",
    "pins the WAL s": "pins the WAL: the longest transaction that read an old state of a growing WAL",
    "since": "since: when the process began (UTC)",
}


def _legend(watch: Watch, table: Table) -> Iterator[str]:
    yield from (text for name, text in _MEANINGS.items() if name in table.headers)
    shortest = format_duration(round(1 / max(1, watch.asked.rate), 3))
    yield (
        f"shares may be wrong by up to {percent(share_error(watch.samples))} of the time (95%, "
        f"{plural(watch.samples, 'sample')}); holds shorter than {shortest} can be missed, and the longest "
        f"gap between samples was {format_duration(round(watch.longest_gap_s, 3))}"
    )


def _times(watch: Watch) -> list[float]:
    step_s = watch.course.step_s
    return [round((place + 0.5) * step_s, 3) for place in range(len(watch.course.samples))]


def _held(watch: Watch) -> View:
    course, data = watch.course, list[Plain]()
    for number, (place, held) in enumerate(course.held.items()):
        process = process_at(watch, int(place) if place.isdecimal() else None)
        label = name(f"{process.pid} {called(process)}" if place.isdecimal() else place)
        parts = [100 * share(count, of) for count, of in zip(held, course.samples, strict=False)]
        hover = f"{label}, %{{x:.1f}} s: %{{y:.0f}}%"
        data.append(line(label, _times(watch)[: len(parts)], parts, number, hover, shape="linear"))
    axes = {"xaxis": axis("seconds"), "yaxis": axis("% of the samples", rangemode="tozero")}
    return View("write lock", data, axes)


def _wal(watch: Watch) -> View:
    course, data = watch.course, list[Plain]()
    for number, (label, frames) in enumerate(
        (("in the WAL", course.frames), ("checkpointed", course.checkpointed))
    ):
        if any(frames):
            hover = f"{label}, %{{x:.1f}} s: %{{y:,.0f}}"
            data.append(line(label, _times(watch)[: len(frames)], frames, number, hover, shape="linear"))
    return View("WAL", data, {"xaxis": axis("seconds"), "yaxis": axis("frames", rangemode="tozero")})
