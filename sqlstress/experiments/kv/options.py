"""The options of the key-value experiment."""

from __future__ import annotations

from sqlstress.options.common import common
from sqlstress.options.option import LOAD, SQLITE, SWEEP, TRUST, Option, either
from sqlstress.options.parsing import choice, duration, ranges, ratio, switch, whole
from sqlstress.report import case as cases
from sqlstress.report import parts as experiments

KV = (
    common("concurrency"),
    Option(
        "buckets",
        ranges(cases.MAX_BUCKETS),
        "1",
        SWEEP,
        "Files: 1 is one database, n is n hash-partitioned ones; a list measures each.",
        "b",
        "LIST",
    ),
    Option("duration", duration(0.01), "2s", SWEEP, "Length of the measured window.", metavar="TIME"),
    Option("warmup", duration(0.0), "500ms", SWEEP, "Load before the window opens.", metavar="TIME"),
    Option("ops", whole(1, 10**9), None, SWEEP, "Transactions for each worker, instead of a window."),
    common("repeat"),
    Option("read-ratio", ratio, 0.5, LOAD, "Share of gets.", metavar="SHARE"),
    Option(
        "update-ratio",
        ratio,
        0.0,
        LOAD,
        "Share of transactions that read a counter and write it plus one.",
        metavar="SHARE",
    ),
    Option("key-space", whole(1, 10**8), 100_000, LOAD, "Number of keys, all preloaded."),
    Option(
        "distribution",
        choice(*cases.DISTRIBUTIONS),
        "uniform",
        LOAD,
        f"How keys are drawn: {either(cases.DISTRIBUTIONS)}.",
        metavar="NAME",
    ),
    Option(
        "key-type",
        choice(*cases.KEY_TYPES),
        "int",
        LOAD,
        f"Type of the keys: {either(cases.KEY_TYPES)}.",
        metavar="TYPE",
    ),
    Option("value-size", whole(8, 1 << 20), 8, LOAD, "Bytes in a value, 8 or more.", metavar="BYTES"),
    Option("batch", whole(1, 100_000), 1, LOAD, "Replaces in a transaction."),
    Option(
        "begin",
        choice(*cases.BEGINS),
        "immediate",
        LOAD,
        f"How a transaction of several statements begins: {either(cases.BEGINS)}.",
        metavar="HOW",
    ),
    common("journal-mode"),
    common("synchronous"),
    common("fullfsync"),
    common("wal-autocheckpoint"),
    Option(
        "checkpointer",
        choice(*experiments.CHECKPOINT_MODES),
        "none",
        SQLITE,
        f"How a process of its own checkpoints: {either(experiments.CHECKPOINT_MODES[1:])}; "
        "the workers' autocheckpoint is 0 then.",
        metavar="MODE",
    ),
    Option(
        "checkpoint-interval",
        duration(0.001),
        "20ms",
        SQLITE,
        "Pause between two checkpoints, and between two looks at the WAL.",
        metavar="TIME",
    ),
    Option(
        "pinned-reader",
        switch,
        False,
        SQLITE,
        "One more process holds a snapshot open: shows what starves a checkpoint.",
        flag=True,
    ),
    common("page-size"),
    common("cache-size"),
    common("mmap-size"),
    common("pragma"),
    common("busy-timeout"),
    common("busy"),
    common("driver"),
    common("verify"),
    Option(
        "preset",
        choice("classic"),
        None,
        TRUST,
        "classic: the published script's measurement.",
        metavar="NAME",
    ),
    common("seed"),
)
