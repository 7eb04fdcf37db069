"""Report of a watch: a table with the locks of each process, findings, and plots over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.lock_samples import MIN_LONG_HOLD_S, length, share, share_error
from sqlstress.analysis.study_parts import PROVED, UNPROVED, WRONG, Conclusion, ReportPart, ended_early
from sqlstress.analysis.wal_growth import (
    AUTOCHECKPOINT,
    LARGE_FRAMES,
    OVERLAP,
    REUSED,
    SNAPSHOT,
    UNCOPIED,
    wal_growth_kind,
)
from sqlstress.analysis.wording import duration, listing, percent, processes, size, truncate
from sqlstress.experiments.watch import sentences
from sqlstress.experiments.watch.sentences import CheckpointShare
from sqlstress.experiments.watch.spec import (
    CHECKPOINT,
    DELETED,
    EXCLUSIVE,
    JOURNAL,
    OTHER_WAL,
    PENDING,
    READ,
    REPLACED,
    WRITE,
    Pin,
    Process,
    Watch,
)
from sqlstress.recording.messages import group_key
from sqlstress.report import Report
from sqlstress.report.results import Holds
from sqlstress.show.blocks import (
    DETAIL,
    NAME,
    Block,
    Column,
    Legend,
    Lines,
    Table,
    VerdictLine,
    conclusions,
    meanings,
    shortened,
    table_of,
)
from sqlstress.show.plots import Plain, Plot, View, axis, line, name
from sqlstress.show.shown import ResultShown, Tile, verdict_tile
from sqlstress.show.text import draw
from sqlstress.statistics.units import NS_PER_S, digits, format_duration, plural

OFTEN = 0.5
"""Least share of the time with the write lock, from 0 to 1, to report short holds."""
WORTH_TELLING = 0.01
"""Least share of the time with a lock, from 0 to 1, to report checkpoints or readers."""
PINNED_S = 1.0
"""Minimum age of an old snapshot for a finding, in seconds."""
CHECKPOINT_S = 0.1
"""Minimum length of a checkpoint for a finding, in seconds."""
IDLE_SHARE, BUSY_SHARE, LITTLE_BYTES = 0.2, 0.8, 1 << 20
"""Limits to decide what a process did during a long hold of the write lock.

It waited if it used at most IDLE_SHARE of a processor, and computed if it used BUSY_SHARE or more. Nothing is
concluded if it waited for a disk for more than IDLE_SHARE of the time, or wrote more than LITTLE_BYTES.
"""
TOGETHER = 0.8
"""Least length of a hold, as a share of a checkpoint's, to name the checkpoint as cause."""
MOST_OF_GAPLESS = 0.9
"""Least length of a hold, as a share of the longest time without a free write lock.

If a hold with a known cause is that long, the longest time needs no finding of its own.
"""
MIN_WAIT_SAMPLES = 3
"""Minimum number of samples in which a checkpoint waited for a reader, to name the reader."""
MIN_STEPS = 5
"""Least number of WAL lengths above 1,000 frames to report missing checkpoints.

Above this length, each commit starts an automatic checkpoint. If the WAL still grows in several steps,
automatic checkpoints are off, or copy nothing. A single step may be one large transaction.
"""
MOST_NAMED = 3
"""Maximum number of processes named in a finding; the table has more."""
_FRAME_HEADER = 24
_LONGEST_WORD, _LONGEST_CALL = 41, 60
_NO_PROCESS = Process(0)


def holds(process: Process, lock: str) -> Holds:
    """Return a process's holds of a lock; empty if no sample saw a hold."""
    return process.locks.get(lock, Holds())


def process_at(watch: Watch, position: int | None) -> Process:
    """Return the process at index `position`; an empty Process if the index is None or out of range."""
    return (
        watch.processes[position]
        if position is not None and 0 <= position < len(watch.processes)
        else _NO_PROCESS
    )


def called(process: Process) -> str:
    """Return a process's command line, shortened: /usr/bin/python becomes python."""
    words = [PurePosixPath(word).name if word.startswith("/") else word for word in process.command]
    return truncate(" ".join(truncate(word, _LONGEST_WORD) for word in words if word), _LONGEST_CALL)


def process_name(process: Process) -> str:
    """Return the name of a process, such as "process 12 (python app.py)"."""
    if process.pid <= 0:
        return "a process of another container"
    command = called(process)
    ended = ", which has ended," * process.gone
    return f"process {process.pid}{f' ({command})' if command else ''}{ended}"


def pinned(watch: Watch, pin: Pin) -> str:
    """Return the processes that share a snapshot's lock: "process 12 (app) and 2 more"."""
    more = len(pin.processes) - 1
    first = process_name(process_at(watch, pin.processes[0] if pin.processes else None))
    return f"{first} and {digits(more)} more" if more > 0 else first


def bytes_of(watch: Watch, frames: int) -> int:
    """Return the size of `frames` frames of the WAL, in bytes."""
    return frames * (watch.page_bytes + _FRAME_HEADER)


def conclusion(watch: Watch) -> Conclusion:
    """Return the verdict: a limit was exceeded, else commits were lost, else the main writer.

    A process loses commits if it writes to a WAL that is deleted or that other processes do not read.
    """
    limit_s = watch.asked.until_held_s
    if watch.held_too_long is not None and limit_s is not None:
        process = process_at(watch, watch.held_too_long)
        last_s = holds(process, WRITE).now_s
        finding = Finding(
            sentences.watch_too_long,
            process=process_name(process),
            now_ns=max(watch.held_s, last_s) * NS_PER_S,
            limit=limit_s,
            short_gaps=last_s < watch.held_s,
        )
        return Conclusion(WRONG, finding)
    if watch.wal_full and watch.asked.until_wal_bytes is not None:
        return Conclusion(WRONG, wal_finding(watch, wal_kind(watch, 0) or "", watch.asked.until_wal_bytes))
    if not watch.samples:
        return Conclusion(UNPROVED, Finding(sentences.watch_no_sample))
    if losing := next((process for process in watch.processes if process.wal and process.writes), None):
        return Conclusion(WRONG, strange_wal(losing, watch))
    writer = watch.processes[0] if watch.processes else _NO_PROCESS
    write_holds = holds(writer, WRITE)
    if write_holds.samples:
        finding = Finding(
            sentences.watch_held,
            process=process_name(writer),
            share=share(write_holds.samples, watch.samples),
            longest_ns=length(write_holds, watch.asked.rate).ns,
        )
    elif watch.open_samples:
        finding = Finding(sentences.watch_free, commits=watch.commits or None)
    else:
        finding = unlocked(watch)
    return Conclusion(PROVED, finding)


def wal_kind(watch: Watch, normal_frames: int = LARGE_FRAMES) -> str | None:
    """Return the cause of a large WAL, such as SNAPSHOT, an old snapshot that a reader keeps.

    Return None if the cause is unknown, or if the WAL has at most `normal_frames` frames.
    """
    if not watch.frames_now and not watch.wal_full:
        return None
    return wal_growth_kind(
        file_frames=watch.wal_bytes_now / bytes_of(watch, 1),  # too many if the page size is unknown
        live_frames=watch.frames_now,
        copied=watch.checkpointed / max(1, watch.frames_now),
        longest_read_s=max((pin.seconds for pin in watch.pins), default=0.0),
        without_gap_s=watch.without_gap_s,
        normal_frames=normal_frames,
    )


def wal_finding(watch: Watch, kind: str, limit: int | None = None) -> Finding:
    """Return the finding on a large WAL.

    `kind` is its cause, as returned by `wal_kind`. `limit` is the size given with --until-wal, or None if the
    WAL did not reach it.
    """
    pin = watch.pins[0] if watch.pins and kind == SNAPSHOT else None
    readers = tuple(process_name(process) for process in watch.processes if holds(process, READ).samples)
    writers = [process for process in watch.processes if holds(process, WRITE).now_s >= MIN_LONG_HOLD_S]
    return Finding(
        sentences.watch_wal,
        kind=kind,
        file_size=watch.wal_bytes_now,
        live=watch.frames_now,
        live_size=bytes_of(watch, watch.frames_now),
        most=watch.frames,
        limit=limit,
        gap_ns=watch.without_gap_s * NS_PER_S if kind == OVERLAP else None,
        readers=(pinned(watch, pin),) if pin else readers[:MOST_NAMED],
        took_ns=pin.seconds * NS_PER_S if pin else None,
        before=pin is not None and is_early(watch, pin),
        writer=process_name(writers[0]) if writers and kind == REUSED else None,
        commits=watch.commits if kind == UNCOPIED and _grew_in_steps(watch) else None,
    )


def _grew_in_steps(watch: Watch) -> bool:
    """Return whether several commits grew the WAL beyond the length that starts an automatic checkpoint."""
    return len({frames for frames in watch.course.frames if frames > AUTOCHECKPOINT}) >= MIN_STEPS


def is_early(watch: Watch, pin: Pin) -> bool:
    """Return whether an old snapshot's transaction may have begun before the watch."""
    return pin.since_s * max(1, watch.asked.rate) <= 2


def strange_wal(process: Process, watch: Watch) -> Finding:
    """Return the finding on a process with a deleted WAL, or that of another database name."""
    if process.wal != OTHER_WAL:
        replacements = [event.at_s * NS_PER_S for event in watch.events if event.what == REPLACED]
        return Finding(
            sentences.watch_deleted_wal,
            process=process_name(process),
            writes=process.writes,
            replaced_ns=replacements[0] if replacements else None,
        )
    return Finding(
        sentences.watch_other_wal,
        process=process_name(process),
        name=process.name,
        database=watch.database,
        writes=process.writes,
    )


def unlocked(watch: Watch) -> Finding:
    """Return the finding that no lock was seen, with the number of processes with the database open."""
    openers = None if watch.hidden and not watch.openers else watch.openers
    return Finding(
        sentences.watch_unlocked, database=watch.database, openers=openers, hidden=watch.hidden or None
    )


def findings(watch: Watch) -> Iterator[Finding]:
    """Yield all findings but the verdict, in the order of the report."""
    yield from ended_early(watch.error)
    first = conclusion(watch).finding
    is_replaced = any(event.what == REPLACED for event in watch.events)
    for process in watch.processes:
        if process.wal == OTHER_WAL and is_replaced:
            continue  # The process uses the replaced file, not another name of the database.
        if process.wal and (finding := strange_wal(process, watch)) != first:
            yield finding
    if watch.links > 1 or watch.is_mount:
        yield Finding(sentences.watch_names, links=watch.links if watch.links > 1 else None)
    if watch.hot_journal:
        yield Finding(sentences.watch_hot_journal)
    yield from islice(_blocking_writers(watch), MOST_NAMED)
    yield from _crowds(watch)
    if not watch.wal_full:
        yield from _wal_growth(watch)
    yield from _waiting_for_readers(watch)
    yield from _gaps(watch)
    yield from _checkpoints(watch)
    yield from _events(watch)
    if any(process.pid <= 0 for process in watch.processes):
        yield Finding(sentences.watch_not_visible)
    if 0 < watch.open_samples < watch.samples and not watch.openers:
        yield Finding(sentences.watch_partly, share=1 - share(watch.open_samples, watch.samples))


def _blocking_writers(watch: Watch) -> Iterator[Finding]:
    for position, process in enumerate(watch.processes):
        write_holds = holds(process, WRITE)
        held_share = share(write_holds.samples, watch.samples)
        exclusive_holds = holds(process, EXCLUSIVE)
        if (
            exclusive_holds.samples
            and exclusive_holds.longest_s >= MIN_LONG_HOLD_S
            and not watch.open_samples
        ):
            yield Finding(sentences.watch_exclusive, process=process_name(process))
        elif _checkpoints_with_the_lock(process):
            yield Finding(
                sentences.watch_blocking_checkpoint,
                process=process_name(process),
                longest_ns=holds(process, CHECKPOINT).longest_s * NS_PER_S,
                share=held_share,
                readers=_readers_that_block(watch, position) or None,
            )
        elif write_holds.longest_s >= MIN_LONG_HOLD_S:
            longest_ns = write_holds.longest_s * NS_PER_S
            yield Finding(
                shared.long_write,
                holder=process_name(process),
                longest_ns=longest_ns,
                lasts=write_holds.now_s > 0,
                **_activity(process),
            )
        elif held_share >= OFTEN:
            yield Finding(
                sentences.watch_often,
                process=process_name(process),
                share=held_share,
                longest_ns=length(write_holds, watch.asked.rate).ns,
            )


def _activity(process: Process) -> dict[str, Any]:
    """Return facts on whether a process waited or computed during its longest hold.

    The dict is empty if neither is certain (see IDLE_SHARE).
    """
    usage = process.usage
    if usage is None or usage.seconds < MIN_LONG_HOLD_S:
        return {}
    cpu = usage.cpu_s / usage.seconds
    # On a busy machine, a process that computes often waits for a processor. So this time counts as running.
    running = max(cpu, usage.running_share)
    writes = usage.disk_share > IDLE_SHARE or (usage.written_bytes or 0) > LITTLE_BYTES
    if writes or IDLE_SHARE < running < BUSY_SHARE:
        return {}
    activity = shared.WAITS if running <= IDLE_SHARE else shared.COMPUTES
    return {"activity": activity, "cpu": cpu, "written": usage.written_bytes}


def _readers_that_block(watch: Watch, holder: int) -> tuple[str, ...]:
    """Return the readers for which checkpoints of process `holder` waited half of the time."""
    checkpoints = holds(process_at(watch, holder), CHECKPOINT).samples
    return tuple(
        process_name(process_at(watch, wait.reader))
        for wait in watch.waits
        if wait.holder == holder and wait.samples >= max(MIN_WAIT_SAMPLES, OFTEN * checkpoints)
    )[:MOST_NAMED]


def _crowds(watch: Watch) -> Iterator[Finding]:
    """Yield findings on programs whose processes block writers together, although no single process does.

    Processes with equal command lines, apart from numbers and paths, belong to one program.
    """
    programs: dict[tuple[str, ...], list[Process]] = {}
    for process in watch.processes:
        if holds(process, WRITE).samples and process.command:
            programs.setdefault(tuple(map(group_key, process.command)), []).append(process)
    for group in programs.values():
        shares = [share(holds(process, WRITE).samples, watch.samples) for process in group]
        if max(shares) < OFTEN <= sum(shares):
            yield Finding(
                sentences.watch_crowd, count=len(group), command=called(group[0]), share=sum(shares)
            )


def _checkpoints_with_the_lock(process: Process) -> bool:
    """Return whether a long checkpoint was the main cause of a process's longest hold of the write lock."""
    write, checkpoint = holds(process, WRITE), holds(process, CHECKPOINT)
    return (
        checkpoint.longest_s >= CHECKPOINT_S
        and write.longest_s >= TOGETHER * checkpoint.longest_s
        and abs(write.longest_at_s - checkpoint.longest_at_s) <= CHECKPOINT_S
    )


def _wal_growth(watch: Watch) -> Iterator[Finding]:
    yield from _pins(watch)
    kind = wal_kind(watch)
    if kind is None and _grew_in_steps(watch) and wal_kind(watch, 2 * AUTOCHECKPOINT) == UNCOPIED:
        kind = UNCOPIED  # Report a WAL below the usual LARGE_FRAMES, too, if no checkpoint limits it.
    if kind is not None and kind != SNAPSHOT:
        yield wal_finding(watch, kind)


def _pins(watch: Watch) -> Iterator[Finding]:
    worst = [pin for pin in watch.pins if pin.seconds >= PINNED_S and pin.grew_frames > 0]
    if not worst:
        return
    pin = worst[0]
    yield Finding(
        sentences.watch_pin,
        process=pinned(watch, pin),
        took_ns=pin.seconds * NS_PER_S,
        frame=pin.frame,
        grew=pin.grew_frames,
        size=bytes_of(watch, pin.grew_frames),
        before=is_early(watch, pin),
        lasts=pin.lasts,
        more=len(worst) - 1 or None,
    )


def _waiting_for_readers(watch: Watch) -> Iterator[Finding]:
    """Yield a finding on the time for which writers with a rollback journal waited for readers.

    A waiting writer holds the PENDING lock. The times of all processes are added up.
    """
    waiting = sum(holds(process, PENDING).samples for process in watch.processes)
    if share(waiting, watch.samples) < WORTH_TELLING:
        return
    readers = tuple(
        process_name(process)
        for process in watch.processes
        if share(holds(process, READ).samples, watch.samples) >= WORTH_TELLING
    )
    yield Finding(sentences.watch_pending, share=share(waiting, watch.samples), readers=readers[:MOST_NAMED])


def _gaps(watch: Watch) -> Iterator[Finding]:
    """Yield a finding on the time with a free write lock, and the longest time without.

    Yield nothing if one process held the lock for most of that time: another finding explains its hold.
    """
    held = share(watch.write.samples, watch.samples)
    explained = (holds(process, WRITE).longest_s for process in watch.processes if _activity(process))
    longest_s = max(explained, default=0.0)
    is_explained = longest_s >= max(MIN_LONG_HOLD_S, MOST_OF_GAPLESS * watch.write.longest_s)
    if held < 0.1 or not watch.open_samples or is_explained:
        return
    yield Finding(
        sentences.watch_gaps, share=max(0.0, 1 - held), longest_ns=length(watch.write, watch.asked.rate).ns
    )


def _checkpoints(watch: Watch) -> Iterator[Finding]:
    checkpointers = [
        CheckpointShare(process_name(process), part, length(holds(process, CHECKPOINT), watch.asked.rate).ns)
        for process in watch.processes
        if (part := share(holds(process, CHECKPOINT).samples, watch.samples)) >= WORTH_TELLING
    ]
    if checkpointers:
        yield Finding(sentences.watch_checkpoints, by=tuple(checkpointers[:MOST_NAMED]))


def _events(watch: Watch) -> Iterator[Finding]:
    for event in watch.events:
        kind = event.what if event.what in (DELETED, REPLACED) else JOURNAL
        yield Finding(sentences.watch_event, kind=kind, at_ns=event.at_s * NS_PER_S, journal=event.journal)


MOST_ROWS = 12
"""Maximum number of processes in the table; the JSON report has more."""
_NAME_WIDTH = 30
_JOURNALS = {"wal": "WAL", "rollback": "rollback"}


class WatchShown(ResultShown[Watch]):
    """Presenter (table, findings, plots) of a watch."""

    def part(self, result: Watch) -> ReportPart:
        return ReportPart("watch", conclusion(result), result.seconds, result.error, "watch", "Watch")

    def result_blocks(self, report: Report, result: Watch) -> Iterator[Block]:
        warnings = [f"Warning: {warning.text}" for warning in report.environment.warnings if warning.serious]
        yield Lines((*about(result), *sqlite_lines(result), *warnings))
        if result.processes:
            table = process_table(result)
            yield table
            yield Legend(table, partial(_legend, result))
        yield VerdictLine(conclusion(result).finding.text)
        if more_findings := [*findings(result)]:
            yield conclusions(more_findings)

    def result_plots(self, result: Watch) -> Iterator[Plot]:
        views = [view for view in (_held_view(result), _wal_view(result)) if view.data]
        if views:
            step = format_duration(result.course.step_s)
            note = f"Each point is {step}: the share of its samples with the lock, or the frames in the WAL."
            yield Plot("As time went on", note, tuple(views), wide=True)

    def tiles(self, result: Watch) -> Iterator[Tile]:
        yield verdict_tile(conclusion(result), "watched", "from outside, without a lock")
        yield percent(share(result.write.samples, result.samples)), "of the time the write lock was held", ""
        yield (
            duration(length(result.write, result.asked.rate).ns),
            "the longest time without a free moment",
            "",
        )
        if result.pins:
            yield plural(result.pins[0].grew_frames, "frame"), "at most behind a reader", ""

    def progress(self, result: Watch) -> str:
        return plural(result.samples, "sample")


def about(watch: Watch) -> Iterator[str]:
    """Yield the lines of the heading: database, samples, length of the WAL."""
    journal = _JOURNALS.get(watch.journal, watch.journal)
    counts = [
        plural(watch.samples, "sample"),
        f"journal {journal}" if journal else "",
        "" if watch.commits is None else plural(watch.commits, "commit"),
    ]
    took = duration(watch.seconds * NS_PER_S)
    yield f"Watched {watch.database} from outside for {took}: {', '.join(filter(None, counts))}."
    if watch.frames:
        now = _frames(watch, watch.frames_now)
        if watch.frames_now:
            now += f", {percent(share(watch.checkpointed, watch.frames_now))} of them checkpointed"
        if watch.wal_bytes_now:
            now += f"; file size {size(watch.wal_bytes_now)}"
        yield f"WAL at the end: {now}. At most {_frames(watch, watch.frames)}."


def sqlite_lines(watch: Watch) -> Iterator[str]:
    """Yield SQLite versions by process, with warnings of known bugs and of two libraries in a process."""
    users: dict[str, list[int]] = {}
    for process in watch.processes:
        for library in process.sqlite:
            users.setdefault(library.version or "unknown", []).append(process.pid)
    if users:
        yield f"SQLite: {'; '.join(f'{version} ({_pids(pids)})' for version, pids in users.items())}."
    libraries = [library for process in watch.processes for library in process.sqlite]
    if buggy := dict.fromkeys(library.version for library in libraries if library.wal_reset_bug):
        yield f"Warning: SQLite {listing([*buggy])} can lose commits (WAL-reset bug). Use 3.51.3 or later."
    for process in watch.processes:
        if len(process.sqlite) > 1:
            files = listing([PurePosixPath(library.file).name for library in process.sqlite])
            yield (
                f"Warning: {process_name(process)} has mapped {len(process.sqlite)} SQLite libraries "
                f"({files}). If both open the database, they drop each other's locks: use one of them."
            )


def _pids(pids: Sequence[int]) -> str:
    more = f" and {digits(len(pids) - MOST_NAMED)} more" if len(pids) > MOST_NAMED else ""
    return f"{', '.join(map(str, pids[:MOST_NAMED]))}{more}"


def _frames(watch: Watch, frames: int) -> str:
    return f"{plural(frames, 'live frame')} ({size(bytes_of(watch, frames))})"


def process_table(watch: Watch) -> Table:
    """Return the table of processes, by time with the write lock in descending order."""
    pins: dict[int, float] = {}
    for pin in watch.pins:
        for position in pin.processes:
            pins[position] = max(pin.seconds, pins.get(position, 0.0))
    rows = list(enumerate(watch.processes[:MOST_ROWS]))

    def percentage(lock: str, meaning: str = "", leaves: int | None = None) -> Column[tuple[int, Process]]:
        heading = {
            WRITE: ("write", "lock %"),
            CHECKPOINT: ("checkpoint", "%"),
            EXCLUSIVE: ("exclusive", "%"),
            READ: ("", "read %"),
        }
        return Column(
            f"{lock} %",
            heading[lock],
            cell=lambda row: _percent(share(holds(row[1], lock).samples, watch.samples)),
            meaning=meaning,
            leaves=leaves,
        )

    columns: tuple[Column[tuple[int, Process]], ...] = (
        Column("pid", role=NAME, cell=lambda row: str(row[1].pid) if row[1].pid > 0 else "?"),
        Column(
            "process",
            align="left",
            role=NAME,
            cell=lambda row: shortened(called(row[1]), _NAME_WIDTH) or "?",
        ),
        Column("user", align="left", role=DETAIL, cell=lambda row: row[1].user[:12] or None, leaves=20),
        Column(
            "since",
            align="left",
            role=DETAIL,
            cell=lambda row: row[1].started[11:16] + " ended" * row[1].gone or None,
            meaning=_SINCE,
            leaves=10,
        ),
        percentage(WRITE, "write lock: share of the samples in which nobody else could write"),
        Column(
            "longest",
            cell=lambda row: _longest(watch, holds(row[1], WRITE)),
            meaning="longest: seen without a break and without a commit",
        ),
        percentage(EXCLUSIVE, "exclusive: nobody else could read either", leaves=40),
        percentage(
            READ,
            "read: share of the samples that saw it reading (of several on one snapshot, one is listed)",
        ),
        Column(
            "pins the WAL s",
            ("pins the", "WAL s"),
            cell=lambda row: f"{pins[row[0]]:.1f}" if row[0] in pins else None,
            meaning="pins the WAL: the longest transaction that read an old state of a growing WAL",
        ),
        percentage(CHECKPOINT, leaves=30),
    )
    return table_of(rows, columns)


def _percent(part: float) -> str | None:
    return percent(part).removesuffix("%") if part else None


def _longest(watch: Watch, write_holds: Holds) -> str | None:
    if not write_holds.samples:
        return None
    longest = length(write_holds, watch.asked.rate)
    return f"{'<' if longest.is_bound else ''}{duration(longest.ns)}"


_SINCE = "since: when the process began (UTC)"


def _legend(watch: Watch, table: Table) -> Iterator[str]:
    yield from sorted(meanings(table), key=lambda meaning: meaning == _SINCE)  # the least important last
    if (rest := len(watch.processes) - MOST_ROWS + watch.others) > 0:
        yield f"not in the table: {processes(rest)} that held locks for less time"
    shortest = format_duration(round(1 / max(1, watch.asked.rate), 3))
    yield (
        f"shares may be wrong by up to {percent(share_error(watch.samples))} of the time (95%, "
        f"{plural(watch.samples, 'sample')}); holds shorter than {shortest} can be missed, and the longest "
        f"gap between samples was {format_duration(round(watch.longest_gap_s, 3))}"
    )


def _held_view(watch: Watch) -> View:
    lines: list[tuple[str, Sequence[float]]] = []
    for position, held in watch.course.held.items():
        process = process_at(watch, int(position) if position.isdecimal() else None)
        label = name(f"{process.pid} {called(process)}" if position.isdecimal() else position)
        parts = [
            100 * share(count, samples) for count, samples in zip(held, watch.course.samples, strict=False)
        ]
        lines.append((label, parts))
    return _view_over_time(watch, "write lock", lines, "% of the samples", "%{y:.0f}%")


def _wal_view(watch: Watch) -> View:
    lines = (("in the WAL", watch.course.frames), ("checkpointed", watch.course.checkpointed))
    return _view_over_time(watch, "WAL", lines, "frames", "%{y:,.0f}")


def _view_over_time(
    watch: Watch, label: str, lines: Iterable[tuple[str, Sequence[float]]], unit: str, value: str
) -> View:
    """Return a plot over time of `lines`, each given as (name, one value per step).

    `value` is the format of a value under the mouse pointer.
    """
    course, data = watch.course, list[Plain]()
    times = [round((position + 0.5) * course.step_s, 3) for position in range(len(course.samples))]
    for number, (name_of_line, values) in enumerate(lines):
        if any(values):
            hover = f"{name_of_line}, %{{x:.1f}} s: {value}"
            data.append(line(name_of_line, times[: len(values)], values, number, hover, shape="linear"))
    return View(label, data, {"xaxis": axis("seconds"), "yaxis": axis(unit, rangemode="tozero")})


# Display during a watch: a page with the table, or a single line.


def now_line(watch: Watch) -> str:
    """Return one line with the present state of the locks and the WAL."""
    line = f"{watch.seconds:.1f}s: {_state(watch)}"
    if watch.frames_now:
        line += f"; WAL {plural(watch.frames_now, 'frame')}, {digits(watch.checkpointed)} checkpointed"
    if pin := next((pin for pin in watch.pins if pin.lasts), None):
        line += f", pinned for {duration(pin.seconds * NS_PER_S)} by {pinned(watch, pin)}"
    return line


def _state(watch: Watch) -> str:
    holder = next((process for process in watch.processes if holds(process, WRITE).now_s), None)
    if holder:
        held = duration(holds(holder, WRITE).now_s * NS_PER_S)
        return f"{process_name(holder)} holds the write lock for {held}"
    losing = (process for process in watch.processes if process.wal and process.writes and not process.gone)
    if process := next(losing, None):
        return f"{process_name(process)} is writing into another WAL, which the others do not see"
    if not watch.open_samples and not watch.openers:
        return f"no process has {watch.database} open; waiting"
    return "write lock free"


def now_page(watch: Watch) -> str:
    """Return the display during a watch as text: heading, state and table, in 80 columns."""
    text = draw(Lines((*about(watch), now_line(watch))))
    return f"{text}\n\n{draw(process_table(watch))}" if watch.processes else text
