"""How the main job is shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.differences import differing
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import disturbed, throughput
from sqlstress.analysis.wording import listing, place
from sqlstress.experiment import face_of
from sqlstress.experiments.kv import show_wal, show_where
from sqlstress.experiments.kv.experiment import Checkpointing, Load
from sqlstress.experiments.kv.show_waits import waiting
from sqlstress.experiments.kv.show_wal import checkpoints, most, series_of, total
from sqlstress.experiments.kv.show_where import shares, told, went
from sqlstress.report import Latency, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import PROCESSOR, Where
from sqlstress.show import case_table, sweep_plots
from sqlstress.show.at_a_rate import at_a_rate
from sqlstress.show.blocks import (
    VERIFIED,
    Block,
    Column,
    Figure,
    Legend,
    Table,
    count_cell,
    table_of,
    verified_legend,
)
from sqlstress.show.case_table import (
    FAILED_SHARE,
    FAIRNESS,
    FILES,
    LONGEST_WAIT,
    PER_PROCESS,
    PROCESSES,
    RATIO,
    SCALING,
    SPREAD,
    TIME,
    TOTAL,
    TPS,
    Cell,
    Measure,
    Row,
    apart_columns,
    of_latency,
    of_layouts,
    p99,
    percentiles,
    rows_of,
    spread_legend,
)
from sqlstress.show.plots import Plain, Plot, View, apart, axis, line, name
from sqlstress.show.shown import LoadShown, Value
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
    WAL_SIZE,
)
from sqlstress.statistics.units import NS_PER_S, format_count

# The table of the main job: a row per case, a column per figure, and what the columns mean.


def build(group: Group) -> Table:
    """Return the table of a group's runs."""
    return table_of(rows_of(group), (*apart_columns(group), *of_layouts(group, FIGURES)), _leaving(group))


def _leaving(group: Group) -> tuple[str, ...]:
    # A window's length stands in the heading, the time of a fixed count nowhere else.
    time = () if group.case.ops is not None or face_of(group.case).behaviour.whole_script else ("time s",)
    return (*time, "TPS per process", "rows/s", *_LEAVING)


COMMITS, GETS = ("replace", "update"), ("get", "pair")


def _rate_of(kinds: tuple[str, ...]) -> Cell:
    """Return the cell of how many of these were done a second, where the load is mixed."""

    def cell(row: Row) -> str | None:
        trials = [trial for trial in row.run.valid if trial.seconds > 0]
        if face_of(row.run.case).behaviour.whole_script or not all(
            _done(trials, one) for one in (COMMITS, GETS)
        ):
            return None
        return count_cell(median(_done([trial], kinds) / trial.seconds for trial in trials))

    return cell


def _done(trials: Sequence[Trial], kinds: tuple[str, ...]) -> int:
    """Return how many operations of these kinds were done."""
    return sum(one.operations.get(kind, 0) for trial in trials for one in trial.workers for kind in kinds)


def _rows_per_s(row: Row) -> str | None:
    if row.trial is None or row.run.case.spec.batch == 1:
        return None
    return count_cell(row.trial.rows_per_s)


def _p50(latency: Latency) -> float | None:
    return latency.p50_ns


def _p99(latency: Latency) -> float | None:
    return latency.p99_ns


FIGURES: tuple[Figure[Row], ...] = (
    FILES,
    PROCESSES,
    TIME,
    PER_PROCESS,
    TOTAL,
    Figure(Column("commits/s", ("commits", "per s")), _rate_of(COMMITS)),
    Figure(Column("gets/s", ("gets", "per s")), _rate_of(GETS)),
    Figure(Column("rows/s", ("rows", "per s")), _rows_per_s),
    Figure(Column("replace p50 ms", ("replace", "p50 ms")), of_latency("replace", _p50)),
    Figure(Column("replace p99 ms", ("replace", "p99 ms")), of_latency("replace", _p99)),
    Figure(Column("update p99 ms", ("update", "p99 ms")), of_latency("update", _p99)),
    Figure(Column("get p99 ms", ("get", "p99 ms")), of_latency("get", _p99)),
    FAILED_SHARE,
    FAIRNESS,
    LONGEST_WAIT,
    VERIFIED,
)
_LEAVING = (
    "replace p50 ms",
    "update p99 ms",
    "get p99 ms",
    "replace p99 ms",
    "TPS per process",
    "longest wait ms",
    "time s",
    "fairness",
)


def legend(group: Group, table: Table) -> Iterator[str]:
    """Explain the columns that the table has, in their order."""
    if face_of(group.case).behaviour.whole_script:
        yield "TPS: pairs a second, each a set and a get of the same key"
    else:
        yield "TPS: transactions a second, each a get or a commit"
    yield from spread_legend(group)
    headers = " ".join(table.headers)
    yield from percentiles(table, "the operations were as fast or faster")
    if "failed %" in headers:
        yield "failed: operations given up for a busy database, in per cent"
    if "fairness" in headers:
        yield "fairness (Jain's index): 1 when all processes got an equal share"
    if "longest wait" in headers:
        yield "longest wait: the slowest operation, one still pending at the end included"
    yield from verified_legend(group)


# Plots of the main job: those of every sweep, and the size of the WALs over the window.


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group for which it has figures."""
    yield from sweep_plots.plots(group)
    yield from wal_size(group)
    yield from show_where.plots(group)


def wal_size(group: Group) -> Iterator[Plot]:
    """Yield the size of the WALs of all files together, a line for each case."""
    data: list[Plain] = []
    for run, trial in group.measured():
        series = series_of(trial, WAL_SIZE)
        if series and series.values and series.times_ns:
            seen = list(zip(series.times_ns, series.values, strict=False))
            where = name(group.place(run.case))
            hover = f"{where}, %{{x:.2f}} s: %{{y:.2f}} MB"
            seconds, sizes = [ns / NS_PER_S for ns, _ in seen], [count / 1e6 for _, count in seen]
            trace = line(where, seconds, sizes, len(data), hover)
            data.append({**trace, "mode": "lines", "line": {**trace["line"], "shape": "hv"}})
    if data:
        axes = {"xaxis": axis("seconds"), "yaxis": axis("MB", rangemode="tozero"), **apart(data)}
        note = "All files together, as a process saw it that holds no connection."
        yield Plot("Size of the WALs", note, (View("", data, axes),), wide=True)


# Where processes mostly wait for a processor, and for each other's: then fewer of them are as good.
#
# Said where every pass supports it, and its effect is measured, as docs/where.md says.


def crowded(group: Group) -> Iterator[Finding]:
    """Yield where waiting for a processor is the largest part of the time, where that part is largest."""
    found = [(shares(run)[PROCESSOR], run) for run in group.runs if _is_crowded(run)]
    if not found:
        return
    share, run = max(found, key=lambda one: one[0])
    yield Finding("where-processor", share=share, where=place(run.case))


def _is_crowded(run: Run) -> bool:
    """Return whether processes of ours take the processors from each other.

    Where other programs have them, fewer processes would get less of them; at a rate it is not the processes
    that make the load.
    """
    if run.case.concurrency == 1 or run.case.rate or disturbed(run):
        return False
    found = told(run)
    return bool(found) and all(map(_mostly_waits, found))


def _mostly_waits(where: Where) -> bool:
    parts = where.parts
    return parts.get(PROCESSOR, 0) > max((ns for part, ns in parts.items() if part != PROCESSOR), default=0)


class KeyValueShown(LoadShown):
    """Layouts with numbers of processes."""

    topics = (throughput, at_a_rate, checkpoints, waiting, went, crowded, partial_proofs, trust)
    together = 3
    measures = (
        (TPS, RATIO),
        (SPREAD,),
        SCALING,
        (
            Measure(
                "{letter} replace p99 ms",
                ("{letter} repl.", "p99 ms"),
                "p99: 99% of the replaces or gets were as fast or faster",
                p99("replace"),
            ),
            Measure("{letter} get p99 ms", ("{letter} get", "p99 ms"), "", p99("get")),
        ),
    )

    def what(self, group: Group) -> str:
        return _classic(group.case) if group.case.workload == "classic" else _key_value(group)

    def closed_loop_table(self, group: Group) -> Iterator[Block]:
        yield from case_table.blocks(group)
        table = build(group)
        yield table
        yield Legend(table, partial(legend, group))

    def more_blocks(self, group: Group) -> Iterator[Block]:
        yield from show_wal.blocks(group)
        yield from show_where.blocks(group)

    def plots(self, group: Group) -> Iterator[Plot]:
        if group.case.rate:
            yield from super().plots(group)
            yield from wal_size(group)
        else:
            yield from plots(group)

    def commits(self, trial: Trial) -> int | None:
        return sum(one.operations.get(kind, 0) for one in trial.workers for kind in COMMITS)

    def loads(self, cases: Sequence[Case]) -> list[str]:
        names = dict.fromkeys(name for case in cases for name in differing(cases[0].spec, case.spec))
        names.pop("loop", None)  # what drives a load is a difference of its own
        beside = names.pop("checkpointing", names) is None
        told = [[f"{name.replace('_', ' ')} {getattr(case.spec, name)}" for name in names] for case in cases]
        if beside:
            for own, case in zip(told, cases, strict=True):
                own.append(_beside(case))
        return [", ".join(own) for own in told]

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        return CASE

    def trial_columns(self, trials: Sequence[Trial]) -> Mapping[str, Callable[[Trial], Value]]:
        return TRIAL


def _beside(case: Case) -> str:
    """Return what runs beside the load of a case."""
    beside = case.spec.checkpointing
    if beside is None:
        return "no process beside the load"
    pinned = ", a pinned reader" if beside.pinned_reader else ""
    return f"checkpointer {beside.mode} every {beside.interval_s:g} s{pinned}"


def _key_value(group: Group) -> str:
    loads = [part.case.spec for part in group.parts or (group,)]
    if group.setting == "checkpointer":
        beside = ["who checkpoints differs"]
    else:
        beside = [show_wal.words(loads[0].checkpointing)] if loads[0].checkpointing else []
    return "; ".join((*(_each(part, loads) for part in (_mix, _keys, _values)), *beside))


def _each(part: Callable[[Load], str], loads: Sequence[Load]) -> str:
    """Return what is said of a part of loads, each thing once."""
    return listing(list(dict.fromkeys(map(part, loads))), "or")


def _keys(load: Load) -> str:
    return f"{format_count(load.key_space)} {load.key_type} keys, {load.distribution}"


def _values(load: Load) -> str:
    return f"{format_count(load.value_size)}-byte values"


def _mix(load: Load) -> str:
    replaces = max(0.0, 1 - load.read_ratio - load.update_ratio)
    batch = f" (transactions of {format_count(load.batch)})" if load.batch > 1 else ""
    shares = ((load.read_ratio, "gets"), (replaces, f"replaces{batch}"), (load.update_ratio, "updates"))
    parts = [f"{share * 100:.4g}% {kind}" for share, kind in shares if share > 1e-9]
    begins = f", BEGIN {load.begin.upper()}" if load.batch > 1 or load.update_ratio else ""
    return f"{', '.join(parts)}{begins}"


def _classic(case: Case) -> str:
    number = f"{format_count(case.ops)} " if case.ops is not None else ""
    return (
        f"The published script: each process sets {number}random integer keys, a commit each, and gets "
        "them shuffled (unit: pair)"
    )


def _of_load(field: str) -> Callable[[Run], Value]:
    return lambda run: getattr(run.case.spec, field) if isinstance(run.case.spec, Load) else None


def _of_checkpointing(figure: Callable[[Checkpointing], Value]) -> Callable[[Run], Value]:
    def value(run: Run) -> Value:
        spec = run.case.spec
        return figure(spec.checkpointing or Checkpointing()) if isinstance(spec, Load) else None

    return value


def _interval_s(run: Run) -> Value:
    beside = getattr(run.case.spec, "checkpointing", None)
    return beside.interval_s if beside else None


CASE: dict[str, Callable[[Run], Value]] = {
    "read_ratio": _of_load("read_ratio"),
    "update_ratio": _of_load("update_ratio"),
    "key_space": _of_load("key_space"),
    "distribution": _of_load("distribution"),
    "key_type": _of_load("key_type"),
    "value_size_bytes": _of_load("value_size"),
    "batch_rows": _of_load("batch"),
    "begin": _of_load("begin"),
    "checkpointer": _of_checkpointing(lambda beside: beside.mode),
    "checkpoint_interval_s": _interval_s,
    "pinned_readers": _of_checkpointing(lambda beside: int(beside.pinned_reader)),
    "loop": _of_load("loop"),
}

TRIAL: dict[str, Callable[[Trial], Value]] = {
    "checkpoints": lambda trial: total(trial, CHECKPOINTS),
    "busy_checkpoints": lambda trial: total(trial, BUSY_CHECKPOINTS),
    "stuck_checkpoints_in_a_row": lambda trial: most(trial, STUCK_CHECKPOINTS),
    "checkpoints_ns": lambda trial: total(trial, CHECKPOINT_TIME),
    "longest_checkpoint_ns": lambda trial: most(trial, LONGEST_CHECKPOINT),
    "largest_wal_bytes": lambda trial: most(trial, LARGEST_WAL),
}
