"""Options of key-value cases, and the case fields that they set."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.experiments.kv.keys import DISTRIBUTIONS, KEY_TYPES
from sqlstress.options.option import LOAD, SQLITE, TRUST, option
from sqlstress.options.parsing import (
    choice,
    duration_with_unit,
    join_alternatives,
    ratio,
    switch,
    whole_number,
)
from sqlstress.report.case import BEGIN_MODES, Case, Server, anyway_option, target_option
from sqlstress.request import Request
from sqlstress.target import keyvalue_drivers, target_names

LOOPS = ("native", "python")
CHECKPOINT_MODES = ("none", "passive", "restart", "truncate")


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Options for extra processes that checkpoint the WAL or hold a snapshot."""

    mode: str = option(
        choice(*CHECKPOINT_MODES),
        "none",
        SQLITE,
        f"Checkpoint in a separate process: {join_alternatives(CHECKPOINT_MODES[1:])}. "
        "This turns off automatic checkpoints of the workers.",
        name="checkpointer",
        metavar="MODE",
        column="checkpointer",
    )
    interval_s: float = option(
        duration_with_unit(0.001),
        "20ms",
        SQLITE,
        "Pause between checkpoints, and between samples of the WAL size. Give a unit: 20ms.",
        name="checkpoint-interval",
        metavar="TIME",
        meaning="Pause between checkpoints, and between samples of the WAL size, in seconds.",
        column="checkpoint_interval_s",
    )
    pinned_reader: bool = option(
        switch,
        False,
        SQLITE,
        "Add a process that holds a snapshot open, which keeps checkpoints from completing.",
        flag=True,
        meaning="Whether a further process holds a snapshot open over the whole window.",
        column="pinned_readers",
    )


@dataclass(frozen=True, slots=True)
class Load:
    """Load of the workers of a key-value case."""

    read_ratio: float = option(
        ratio, "50%", LOAD, "Share of reads: 90% or 0.9.", metavar="SHARE", meaning="Share of reads, 0 to 1."
    )
    update_ratio: float = option(
        ratio,
        "0%",
        LOAD,
        "Share of transactions that read a counter and write it back plus one: 20% or 0.2.",
        metavar="SHARE",
        meaning="Share of transactions that read a counter and write it back plus one, 0 to 1.",
    )
    key_space: int = option(
        whole_number(1, 10**8), 100_000, LOAD, "Number of keys. All are written before the load starts."
    )
    distribution: str = option(
        choice(*DISTRIBUTIONS),
        "uniform",
        LOAD,
        f"Distribution of the keys: {join_alternatives(DISTRIBUTIONS)}.",
        metavar="NAME",
    )
    key_type: str = option(
        choice(*KEY_TYPES), "int", LOAD, f"Type of the keys: {join_alternatives(KEY_TYPES)}.", metavar="TYPE"
    )
    value_size: int = option(
        whole_number(8, 1 << 20),
        8,
        LOAD,
        "Size of a value, at least 8.",
        metavar="BYTES",
        column="value_size_bytes",
    )
    batch: int = option(whole_number(1, 100_000), 1, LOAD, "Writes per transaction.", column="batch_rows")
    begin: str = option(
        choice(*BEGIN_MODES),
        "immediate",
        LOAD,
        f"BEGIN of a transaction with several statements: {join_alternatives(BEGIN_MODES)}.",
        metavar="HOW",
    )
    loop: str = option(
        choice(*LOOPS),
        None,
        LOAD,
        "Loop that runs the operations: native (C) or python. Default: native if available.",
        metavar="LOOP",
        meaning="Loop that ran the operations: native, in C, or python.",
        unsaid="python",
    )
    where: bool = option(
        switch,
        False,
        TRUST,
        "Show where the time of an operation goes, and which process held the lock.",
        flag=True,
        meaning="Whether the report shows where the time of an operation goes, and who held the lock.",
        column=None,
    )
    checkpointing: Checkpointing | None = None
    """Extra processes that checkpoint the WAL or hold a snapshot; None if there are none."""


_UNSAID = Server()


@dataclass(frozen=True, slots=True)
class KvSelection:
    """Options that select cases and are not stored in them."""

    preset: str | None = option(
        choice("classic"), None, TRUST, "classic: measure what the published script measures.", metavar="NAME"
    )
    target: tuple[str, ...] | None = target_option(target_names(keyvalue_drivers()))
    anyway: bool = anyway_option()
    checkpointing: Checkpointing = Checkpointing()
    """Requested extra processes, which checkpoint the WAL or hold a snapshot."""
    server: Server = _UNSAID
    """Options for a database server (PostgreSQL)."""


LoadRequest = Request[Load, KvSelection]
CHECKPOINTER, PINNED_READER, WAL_WATCHER = "checkpointer", "pinned reader", "WAL watcher"
"""Names of the processes that a case may have in addition to its workers."""


def companion_names(case: Case) -> tuple[str, ...]:
    """Return the names of the case's processes in addition to its workers, such as "checkpointer"."""
    checkpointing = case.spec.checkpointing
    if checkpointing is None:
        return ()
    checkpointer = () if checkpointing.mode == "none" else (CHECKPOINTER,)
    return (*checkpointer, *[PINNED_READER] * checkpointing.pinned_reader, WAL_WATCHER)


USUAL_BUSY_TIMEOUT_S = 5
"""Default busy timeout of Python's sqlite3 and most other libraries, in seconds."""
