"""Presentation of key-value cases: tables, sentences and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.differences import differing
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import throughput_findings, waits
from sqlstress.analysis.wording import buckets, listing, processes, size
from sqlstress.experiment import experiment_of, has_window
from sqlstress.experiments.kv import show_where
from sqlstress.experiments.kv.load_findings import (
    COMMITS,
    GETS,
    checkpoints,
    given_up,
    longer_window_findings,
    most,
    processor_findings,
    series_of,
    slowest_operation_findings,
    total,
    waiting,
    worst_p99_ns,
)
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.options.option import options_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case, words
from sqlstress.show import case_table
from sqlstress.show.at_a_rate import rate_findings
from sqlstress.show.blocks import (
    LESS,
    MISSING,
    PERCENTILES,
    VERIFIED,
    Block,
    Column,
    Legend,
    Note,
    Picture,
    Table,
    Value,
    count_cell,
    ms_cell,
    share_cell,
    table_of,
    verified_legend,
)
from sqlstress.show.plots import Plain, Plot, View, axis, line, name, small_multiples
from sqlstress.show.shown import LoadShown, option_columns
from sqlstress.statistics import series
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_S, format_count, format_duration
from sqlstress.user_work.failures_view import failure_blocks, failure_findings


def build(group: Group) -> Table:
    """Return the main table of a group of cases: a row per case."""
    return table_of(case_table.rows_of(group), columns(group))


def columns(group: Group) -> tuple[Column[case_table.Row], ...]:
    """Return the columns of a group's main table, which depend on the options of the cases."""
    is_script = not experiment_of(group.case).common_start
    # The heading shows the length of a window, so the column with the time is omitted first (`leaves`) if the
    # table is too wide. The time of a fixed number of operations (--ops) varies, and no heading shows it.
    has_window = group.case.ops is None and not is_script
    unit = (
        "pairs per second, each a set and a get of the same key"
        if is_script
        else "transactions per second, each a get or a commit"
    )
    took = _percentile_legend(group)
    return (
        *case_table.setting_columns(group),
        case_table.BUCKETS,
        case_table.PROCESSES,
        replace(case_table.TIME, leaves=10 if has_window else 85),
        case_table.PER_PROCESS,
        case_table.TOTAL.explained([f"TPS: {unit}", *case_table.spread_legend(group)]),
        Column("commits/s", ("commits", "per s"), cell=_rate_of(COMMITS)),
        Column("gets/s", ("gets", "per s"), cell=_rate_of(GETS)),
        Column("rows/s", ("rows", "per s"), cell=_rows_per_s, leaves=30),
        _latency("replace", "p50", took, leaves=40),
        _p99("replace", took, leaves=70),
        _p99("update", took, leaves=50),
        _p99("get", took, leaves=60),
        case_table.FAILED_SHARE,
        case_table.FAIRNESS,
        case_table.LONGEST_WAIT,
        VERIFIED.explained(verified_legend(group)),
    )


def _rate_of(kinds: tuple[str, ...]) -> case_table.Cell:
    """Return the function that makes the cells of a column with the operations of `kinds` per second.

    A cell is empty if the load only reads or only writes, because the column TPS shows this number.
    """

    def cell(row: case_table.Row) -> str | None:
        trials = [trial for trial in row.run.valid if trial.seconds > 0]
        is_script = not experiment_of(row.run.case).common_start
        if is_script or not all(
            sum(_done(trial, kinds_of_one_side) for trial in trials) for kinds_of_one_side in (COMMITS, GETS)
        ):
            return None
        return count_cell(median(_done(trial, kinds) / trial.seconds for trial in trials))

    return cell


def _done(trial: Trial, kinds: tuple[str, ...]) -> int:
    return sum(worker.operations.get(kind, 0) for worker in trial.workers for kind in kinds)


def _rows_per_s(row: case_table.Row) -> str | None:
    if row.trial is None or row.run.case.spec.batch == 1:
        return None
    return count_cell(row.trial.rows_per_s)


def _latency(kind: str, percentile: str, meaning: str, leaves: int) -> Column[case_table.Row]:
    latency_of = case_table.kind_latency(kind)
    return case_table.percentile_column(f"{kind} {percentile}", latency_of, meaning=meaning, leaves=leaves)


WORST_MARK = "*"
"""Mark of cells that show the p99 of the slowest process instead of all processes."""


def _percentile_legend(group: Group) -> str:
    took = f"{PERCENTILES} of the operations took at most this long"
    if any(worst_p99_ns(run, kind) for run in group.runs for kind in (*COMMITS, *GETS)):
        return f"{took}; {WORST_MARK}: of the slowest process, because shares were uneven"
    return took


def _p99(kind: str, meaning: str, leaves: int) -> Column[case_table.Row]:
    """Return the column with the p99 of a kind of operation.

    If the processes did unequal numbers of operations, a cell shows the p99 of the slowest process (see
    `worst_p99_ns`). `meaning` is text for the legend. A table that is too wide omits columns by `leaves`.
    """
    of_all = _latency(kind, "p99", meaning, leaves)

    def cell(row: case_table.Row) -> str | None:
        shown = of_all.cell(row)
        worst_ns = worst_p99_ns(row.run, kind) if shown else None
        return f"{ms_cell(worst_ns)}{WORST_MARK}" if worst_ns else shown

    return replace(of_all, cell=cell, better=LESS)


def wal_blocks(group: Group) -> Iterator[Block]:
    """Yield the table of checkpoints and WALs, its legend, and a picture of the WAL sizes."""
    if any(run.case.spec.checkpointing for run, _ in group.measured()):
        columns = (*case_table.setting_columns(group), *_WAL_COLUMNS)
        table = table_of(case_table.rows_of(group), columns)
        yield table
        yield Note(Legend(table).text)
    if lines := tuple(picture(group)):
        yield Picture(lines)


def _share(trial: Trial) -> str | None:
    time_ns = total(trial, series.CHECKPOINT_TIME)
    return None if time_ns is None or trial.seconds <= 0 else share_cell(time_ns / NS_PER_S / trial.seconds)


def _replace_p999(trial: Trial) -> str | None:
    latency = trial.latency.get("replace")
    if latency is None or not latency.count:
        return None
    # If the trial has too few replaces for this percentile, the cell has a mark. The cell of a load without
    # replaces is empty.
    return ms_cell(latency.p999_ns) or MISSING


def _megabytes(size_bytes: float | None) -> str | None:
    return None if size_bytes is None else count_cell(size_bytes / 1e6)


_WAL_COLUMNS: tuple[Column[case_table.Row], ...] = (
    case_table.BUCKETS.explained(()),
    case_table.PROCESSES,
    case_table.trial_column(
        "checkpoints",
        "checkpoints",
        lambda trial: total(trial, series.CHECKPOINTS),
        count_cell,
        meaning="checkpoints: those that ended in the window, counted for each bucket",
    ),
    case_table.trial_column(
        "busy",
        "busy_checkpoints",
        lambda trial: total(trial, series.BUSY_CHECKPOINTS),
        count_cell,
        meaning="busy: SQLite returned busy",
    ),
    case_table.trial_column(
        "stuck",
        "stuck_checkpoints_in_a_row",
        lambda trial: most(trial, series.STUCK_CHECKPOINTS),
        count_cell,
        meaning="stuck: the most in a row that left frames in the WAL and made no progress",
    ),
    # This column is only in the CSV, because the table shows the time in checkpoints as a share of time.
    Column(
        "time in checkpoints", csv="checkpoints_ns", value=lambda trial: total(trial, series.CHECKPOINT_TIME)
    ),
    case_table.trial_column(
        "longest ms",
        "longest_checkpoint_ns",
        lambda trial: most(trial, series.LONGEST_CHECKPOINT),
        ms_cell,
        leaves=20,
    ),
    Column(
        "share of time",
        ("share", "of time"),
        cell=case_table.trial_cell(_share),
        meaning="share of time: part of the window spent in checkpoints",
        leaves=10,
    ),
    Column(
        "replace p99.9 ms",
        ("replace", "p99.9 ms"),
        cell=case_table.trial_cell(_replace_p999),
        meaning=f"{PERCENTILES} of the operations took at most this long",
    ),
    case_table.trial_column(
        "largest WAL MB",
        "largest_wal_bytes",
        lambda trial: most(trial, series.LARGEST_WAL),
        _megabytes,
        heading=("largest", "WAL MB"),
        meaning="largest WAL: of one file, as seen by a process without a connection",
    ),
)

LEVELS = " ▁▂▃▄▅▆▇█"
WIDTH = 32
"""Width of the picture of WAL sizes, in characters."""


def _sizes(group: Group) -> list[tuple[Case, Series]]:
    observed = ((run.case, series_of(trial, series.WAL_SIZE)) for run, trial in group.measured())
    return [(case, sizes) for case, sizes in observed if sizes and sizes.values]


def picture(group: Group) -> Iterator[str]:
    """Yield a heading, then a line per case that draws the WAL size over the window."""
    names = []
    for case, _ in _sizes(group):
        # If the cases differ in an option, `group.parts` has a group for each value of the option. The label
        # then includes the value.
        place = f"{buckets(case.buckets)}, {processes(case.concurrency)}"
        names.append(group.place(case) if group.parts else place)
    if names:
        yield "Size of all WALs together over the window, and its maximum:"
    width = max(map(len, names), default=0)
    for label, (case, sizes) in zip(names, _sizes(group), strict=True):
        window_ns = int(case.duration_s * NS_PER_S) if has_window(case) else 0
        yield f"{label:<{width}} |{bars(sizes, window_ns)}| {size(max(sizes.values))}"


def bars(sizes: Series, window_ns: int) -> str:
    """Return WIDTH characters: each is a bar for the largest size in 1/WIDTH of the window.

    A part of the window without samples repeats the previous bar. If `window_ns` is 0, the window ends with
    the last sample.
    """
    ends_ns = max(1, window_ns, 1 + max(sizes.times_ns, default=0))
    largest = max((1, *sizes.values))
    highest: dict[int, int] = {}
    for at_ns, value in zip(sizes.times_ns, sizes.values, strict=False):
        place = max(0, at_ns) * WIDTH // ends_ns
        highest[place] = max(value, highest.get(place, 0))
    drawn, value = "", 0
    for place in range(WIDTH):
        value = highest.get(place, value)
        drawn += LEVELS[-(-value * (len(LEVELS) - 1) // largest)]
    return drawn


def wal_plot(group: Group) -> Iterator[Plot]:
    """Yield the plot of the WAL size over the window, with a line per case."""
    data: list[Plain] = []
    for case, observed in _sizes(group):
        if not observed.times_ns:
            continue
        points = list(zip(observed.times_ns, observed.values, strict=False))
        seconds, sizes = [ns / NS_PER_S for ns, _ in points], [count / 1e6 for _, count in points]
        label = name(group.place(case))
        trace = line(label, seconds, sizes, len(data), f"{label}, %{{x:.2f}} s: %{{y:.2f}} MB")
        data.append({**trace, "mode": "lines", "line": {**trace["line"], "shape": "hv"}})
    if data:
        axes = {"xaxis": axis("seconds"), "yaxis": axis("MB", rangemode="tozero"), **small_multiples(data)}
        note = "All files together, as seen by a process without a connection."
        yield Plot("Size of the WALs", note, (View("", data, axes),), wide=True)


class KeyValueShown(LoadShown):
    """Presenter of key-value cases: it makes the tables, sentences and plots of a group of cases."""

    topics = (
        *(given_up, failure_findings, throughput_findings, rate_findings, checkpoints),
        *(
            longer_window_findings,
            waits,
            waiting,
            slowest_operation_findings,
            processor_findings,
            partial_proofs,
            figure_limits,
        ),
    )
    together = 3

    def activity(self, group: Group) -> str:
        if group.case.workload != "classic":
            return _key_value(group)
        number = f"{format_count(group.case.ops)} " if group.case.ops is not None else ""
        return (
            f"The published script: each process sets {number}random integer keys, one commit each, then "
            "gets them in random order (unit: pair)"
        )

    def more_blocks(self, group: Group) -> Iterator[Block]:
        yield from failure_blocks(group, with_warmup=True)
        yield from wal_blocks(group)
        yield from show_where.blocks(group)

    def plots(self, group: Group) -> Iterator[Plot]:
        yield from super().plots(group)
        yield from wal_plot(group)
        if not group.case.rate:
            yield from show_where.plots(group)

    def commits(self, trial: Trial) -> int | None:
        return _done(trial, COMMITS)

    def loads(self, cases: Sequence[Case]) -> list[str]:
        names = dict.fromkeys(name for case in cases for name in differing(cases[0].spec, case.spec))
        names.pop("loop", None)  # The report shows the loop separately.
        shows_companions = names.pop("checkpointing", names) is None
        labels = [
            [f"{name.replace('_', ' ')} {getattr(case.spec, name)}" for name in names] for case in cases
        ]
        if shows_companions:
            for label, case in zip(labels, cases, strict=True):
                label.append(_companions_label(case.spec.checkpointing))
        return [", ".join(label) for label in labels]

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        columns = {**option_columns(runs, _load), **option_columns(runs, _checkpointing)}
        columns["checkpoint_interval_s"] = _checkpoint_interval_s
        columns["loop"] = columns.pop("loop")  # In all versions, `loop` is the last of these columns.
        return columns

    def columns(self, group: Group) -> Sequence[Column[case_table.Row]]:
        return columns(group)

    def further_columns(self, group: Group) -> Sequence[Column[case_table.Row]]:
        return _WAL_COLUMNS


def _companions_label(checkpointing: Checkpointing | None) -> str:
    if checkpointing is None:
        return "no extra process"
    pinned = ", a pinned reader" if checkpointing.pinned_reader else ""
    return f"checkpointer {checkpointing.mode} every {checkpointing.interval_s:g} s{pinned}"


def _key_value(group: Group) -> str:
    loads = [part.case.spec for part in group.parts or (group,)]
    # If the cases differ in an option, `group.parts` has a group for each value of the option. Descriptions
    # that are equal for several of these groups are listed once.
    parts = [
        listing(list(dict.fromkeys(map(part, loads))), "or")
        for part in (
            _mix,
            lambda load: f"{format_count(load.key_space)} {load.key_type} keys, {load.distribution}",
            lambda load: f"{format_count(load.value_size)}-byte values",
        )
    ]
    parts += _other_options(loads, _DESCRIBED)
    if group.setting == "checkpointer":
        parts.append("the checkpointer differs")
    elif loads[0].checkpointing:
        parts.append(_companions_phrase(loads[0].checkpointing))
    return "; ".join(parts)


_DESCRIBED = frozenset(
    {"read_ratio", "update_ratio", "key_space", "distribution", "key_type", "value_size", "batch", "begin"}
    | {"loop", "where"}
)
"""Options of the load that the report describes elsewhere: in the table or the sentence above it."""
_DESCRIBED_CHECKPOINTING = frozenset({"mode", "interval_s", "pinned_reader"})


def _other_options(parts: Sequence[Load | Checkpointing], described: frozenset[str]) -> Iterator[str]:
    """Yield text such as "batch 10 or 100" for each option that is not at its default.

    `described` has options to omit, because they are described elsewhere.
    """
    kind: Any = type(parts[0])
    for field, option in options_of(kind).items():
        values = dict.fromkeys(getattr(part, field) for part in parts)
        if field not in described and {*values} != {option.value}:
            yield f"{option.name} {listing([*map(words, values)], 'or')}"


def _companions_phrase(checkpointing: Checkpointing) -> str:
    parts = []
    if checkpointing.mode != "none":
        every = format_duration(checkpointing.interval_s)
        parts.append(f"a {checkpointing.mode.upper()} checkpoint every {every}")
    if checkpointing.pinned_reader:
        parts.append("a reader that keeps its snapshot open")
    parts += _other_options([checkpointing], _DESCRIBED_CHECKPOINTING)
    return f"during the load {' and '.join(parts)}"


def _mix(load: Load) -> str:
    replaces = max(0.0, 1 - load.read_ratio - load.update_ratio)
    batch = f" (transactions of {format_count(load.batch)})" if load.batch > 1 else ""
    shares = ((load.read_ratio, "gets"), (replaces, f"replaces{batch}"), (load.update_ratio, "updates"))
    parts = [f"{share * 100:.4g}% {kind}" for share, kind in shares if share > 1e-9]
    begins = f", BEGIN {load.begin.upper()}" if load.batch > 1 or load.update_ratio else ""
    return f"{', '.join(parts)}{begins}"


def _load(run: Run) -> Load | None:
    return run.case.spec if isinstance(run.case.spec, Load) else None


def _checkpointing(run: Run) -> Checkpointing | None:
    load = _load(run)
    return (load.checkpointing or Checkpointing()) if load else None


def _checkpoint_interval_s(run: Run) -> float | None:
    load = _load(run)
    return load.checkpointing.interval_s if load and load.checkpointing else None
