"""What ran beside the load: in words, in a table of its own, and in a picture of the WALs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Block, Column, Paragraph, Picture
from sqlstress.display.case_table import FILES, PROCESSES, Cell, Row, rows_of
from sqlstress.display.figures import MISSING, Figure, count_cell, ms_cell, share_cell, table_of
from sqlstress.experiments.kv.shown.wal import Wal, picture, wal_of
from sqlstress.experiments.kv.spec import Checkpointing
from sqlstress.statistics.units import format_duration

_MEANINGS = {
    "checkpoints": "checkpoints: those that ended within the window, one for each file",
    "busy": "busy: SQLite answered that a lock stayed taken",
    "stuck": "stuck: the most in a row that left frames in the WAL and got no further",
    "share of time": "share of time: of the window, in checkpoints",
    "replace p99.9 ms": "p99.9: 99.9% of the operations were as fast or faster",
    "largest WAL MB": "largest WAL: of one file, as a process without a connection saw it",
}


def words(asked: Checkpointing) -> str:
    """Return what ran beside the load: "beside the load a RESTART checkpoint every 20ms"."""
    told = []
    if asked.mode != "none":
        told.append(f"a {asked.mode.upper()} checkpoint every {format_duration(asked.interval_s)}")
    if asked.pinned_reader:
        told.append("a reader that stays in its snapshot")
    return f"beside the load {' and '.join(told)}"


def blocks(group: Group) -> Iterator[Block]:
    """Yield what the checkpoints and the WALs did; nothing where nobody looked."""
    if group.case.spec.checkpointing and any(group.measured()):
        table = table_of(rows_of(group), _FIGURES)
        yield table
        yield Paragraph(f"{'; '.join(text for name, text in _MEANINGS.items() if name in table.headers)}.")
    if lines := tuple(picture(group)):
        yield Picture(lines)


def _of_wal(figure: Callable[[Wal], str | None]) -> Cell:
    def cell(row: Row) -> str | None:
        wal = wal_of(row.run.case, row.trial) if row.trial else None
        return None if wal is None else figure(wal)

    return cell


def _replace_p999(row: Row) -> str | None:
    latency = row.trial.latency.get("replace") if row.trial else None
    if latency is None or not latency.count:
        return None
    # Too few operations have none; the others of its column may have.
    return ms_cell(latency.p999_ns) or MISSING


def _megabytes(count: int | None) -> str | None:
    return None if count is None else count_cell(count / 1e6)


_FIGURES = (
    FILES,
    PROCESSES,
    Figure(Column("checkpoints", ("check-", "points")), _of_wal(lambda wal: count_cell(wal.checkpoints))),
    Figure(Column("busy", ("", "busy")), _of_wal(lambda wal: count_cell(wal.busy))),
    Figure(Column("stuck", ("", "stuck")), _of_wal(lambda wal: count_cell(wal.stuck))),
    Figure(Column("longest ms", ("longest", "ms")), _of_wal(lambda wal: ms_cell(wal.longest_ns))),
    Figure(Column("share of time", ("share", "of time")), _of_wal(lambda wal: share_cell(wal.share))),
    Figure(Column("replace p99.9 ms", ("replace", "p99.9 ms")), _replace_p999),
    Figure(
        Column("largest WAL MB", ("largest", "WAL MB")), _of_wal(lambda wal: _megabytes(wal.largest_bytes))
    ),
)
