"""How the main job is shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.comparison.matching import differing
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import throughput
from sqlstress.analysis.wording import listing
from sqlstress.display import side_by_side
from sqlstress.display.at_a_rate.findings import at_a_rate
from sqlstress.display.at_a_rate.plots import plots as plots_at_a_rate
from sqlstress.display.at_a_rate.table import blocks as table_at_a_rate
from sqlstress.display.blocks import Block, Paragraph
from sqlstress.display.measures import RATIO, SCALING, SPREAD, TPS, Measure, p99
from sqlstress.display.plot import Plot
from sqlstress.display.shown import Shown, Value
from sqlstress.display.sweeps.throughput import over_time
from sqlstress.experiments.kv.shown import plots, wal, where
from sqlstress.experiments.kv.shown.checkpoints import checkpoints
from sqlstress.experiments.kv.shown.crowded import crowded
from sqlstress.experiments.kv.shown.table import COMMITS, build, legend
from sqlstress.experiments.kv.shown.waiting import waiting
from sqlstress.experiments.kv.shown.wal import most, total
from sqlstress.experiments.kv.shown.went import went
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
)
from sqlstress.statistics.units import format_count


class KeyValueShown(Shown):
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

    def blocks(self, group: Group) -> Iterator[Block]:
        if group.case.arrivals:
            yield from table_at_a_rate(group)
        else:
            yield from side_by_side.blocks(group)
            table = build(group)
            yield table
            yield Paragraph(legend(group, table))
        yield from wal.blocks(group)
        yield from where.blocks(group)

    def plots(self, group: Group) -> Iterator[Plot]:
        if group.case.arrivals:
            yield from plots_at_a_rate(group)
            yield from over_time(group)
            yield from plots.wal_size(group)
        else:
            yield from plots.plots(group)

    def rate(self, run: Run) -> float | None:
        return run.median_tps()

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
        beside = [wal.words(loads[0].checkpointing)] if loads[0].checkpointing else []
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
}

TRIAL: dict[str, Callable[[Trial], Value]] = {
    "checkpoints": lambda trial: total(trial, CHECKPOINTS),
    "busy_checkpoints": lambda trial: total(trial, BUSY_CHECKPOINTS),
    "stuck_checkpoints_in_a_row": lambda trial: most(trial, STUCK_CHECKPOINTS),
    "checkpoints_ns": lambda trial: total(trial, CHECKPOINT_TIME),
    "longest_checkpoint_ns": lambda trial: most(trial, LONGEST_CHECKPOINT),
    "largest_wal_bytes": lambda trial: most(trial, LARGEST_WAL),
}
