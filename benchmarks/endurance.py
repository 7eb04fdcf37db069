"""endurance: what many workers, many files, many keys and a long run take.

    python -m benchmarks endurance --output benchmarks/results/endurance.md

Nothing may grow with the length of a run: memory of the parent and of the workers, their descriptors,
the report. The long run is held against its own beginning and against one of a tenth of its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

from benchmarks.bench import Bench
from benchmarks.document import AT_MOST, Comparison, Plan, Row, grid
from benchmarks.watch import Moment, Taken, Watch

TITLE = "what many workers, many files, many keys and a long run take"
MIB, KIB = 1 << 20, 1 << 10
TENTHS = 10
GROWTH = 1.05
"""What the last tenth of a run may take of what the second one took: in the first one pages are touched."""
LONGER = 1.10
"""What the report of a run may be of that of one of a tenth of the length."""
SHORT_S = 5.0
"""The window of the runs that are large in another way, at most."""

NOTES = (
    "50/50, WAL, synchronous normal, two workers, one file and 10,000 keys where nothing else is said; each "
    "run is verified. Memory is the resident set, pages that are shared included: of the parent, and of the "
    "largest worker. By tenths: the median of each tenth of the time in which all workers were there, from "
    "their start to their end. Last over second: that of the last tenth over that of the second.",
)
MEASURES: dict[str, Callable[[Moment], float]] = {
    "parent bytes": lambda moment: moment.parent.memory,
    "worker bytes": lambda moment: _most(moment, lambda one: one.memory),
    "parent descriptors": lambda moment: moment.parent.descriptors,
    "worker descriptors": lambda moment: _most(moment, lambda one: one.descriptors),
}
"""Of the worker that has most."""


def plan(bench: Bench) -> Plan:
    """List the runs."""
    options, report_bytes = bench.options, list[int]()
    longest_s = options.duration_s
    runs: dict[str, dict[str, object]] = {
        f"{longest_s / TENTHS:g} s": {"duration": f"{longest_s / TENTHS}s"},
        f"{longest_s:g} s": {"duration": f"{longest_s}s"},
        f"{options.workers:,} workers": {"concurrency": options.workers},
        f"{options.buckets:,} files": {"buckets": options.buckets},
        f"{options.keys:,} keys": {"key-space": options.keys},
    }
    usual: dict[str, object] = {
        "concurrency": 2,
        "buckets": 1,
        "key-space": 10_000,
        "duration": f"{min(SHORT_S, longest_s)}s",
        "synchronous": "normal",
        "repeat": 1,
        "seed": bench.seed(0),
    }

    def measured(cell: dict[str, str]) -> Row:
        return _row(bench, cell, {**usual, **runs[cell["run"]]}, report_bytes)

    return Plan(NOTES, grid(run=runs), measured)


def _row(bench: Bench, cell: dict[str, str], given: dict[str, object], report_bytes: list[int]) -> Row:
    """Run a size; the second one, the long run, is held against its beginning and against the first."""
    # A run takes about as many samples, whatever its length; short ones at least a few.
    watch = Watch(min(1.0, max(0.02, float(str(given["duration"])[:-1]) / 100)))
    outcome = bench.tool.kv({option: str(value) for option, value in given.items()}, watch.watching)
    report_bytes.append(outcome.report_bytes)
    moments = [one for one in watch.moments if len(one.workers) >= int(str(given["concurrency"]))]
    is_long = len(report_bytes) == 2
    if is_long and len(moments) < TENTHS:
        raise ValueError(f"the run was seen at {len(moments)} moments only: give a longer --duration")
    parts = min(TENTHS, len(moments))
    bounds = [len(moments) * part // parts for part in range(parts + 1)] if parts else []
    tenths = [moments[low:high] for low, high in pairwise(bounds)]
    comparisons: tuple[Comparison, ...] = ()
    if is_long:
        longer = report_bytes[1] / report_bytes[0]
        comparisons = (
            *(_growth(what, tenths) for what in MEASURES),
            Comparison("report, long over short", (longer,), LONGER, AT_MOST),
        )
    by_tenths = {
        f"{who} MiB by tenths": " ".join(f"{_middle(f'{who} bytes', part) / MIB:.0f}" for part in tenths)
        for who in ("parent", "worker")
    }
    figures = {
        "TPS": outcome.trial.tps,
        "start s": outcome.trial.start_s or 0.0,
        "whole s": outcome.wall_s,
        "most parent MiB": max(map(MEASURES["parent bytes"], watch.moments)) / MIB,
        "parent descriptors": max(map(MEASURES["parent descriptors"], watch.moments)),
        "worker descriptors": max(map(MEASURES["worker descriptors"], watch.moments)),
        "report KiB": outcome.report_bytes / KIB,
    }
    samples = {"at s": [one.at_s for one in moments]}
    samples |= {what: [float(value(one)) for one in moments] for what, value in MEASURES.items()}
    return Row({**cell, **by_tenths}, figures, comparisons, samples)


def _growth(what: str, tenths: Sequence[Sequence[Moment]]) -> Comparison:
    """Hold the last tenth of a run against its second one."""
    grown = _middle(what, tenths[-1]) / _middle(what, tenths[1])
    return Comparison(f"{what.replace('bytes', 'memory')}, last over second", (grown,), GROWTH, AT_MOST)


def _middle(what: str, moments: Sequence[Moment]) -> float:
    return median(map(MEASURES[what], moments))


def _most(moment: Moment, value: Callable[[Taken], int]) -> int:
    return max(map(value, moment.workers.values()), default=0)
