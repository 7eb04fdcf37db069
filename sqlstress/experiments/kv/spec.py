"""What a key-value case says beside what all cases say."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import LOAD, SQLITE, TRUST, either, option
from sqlstress.options.parsing import choice, duration_with_unit, ratio, switch, whole
from sqlstress.report.case import BEGINS
from sqlstress.report.server import Server, anyway_option, target_option
from sqlstress.target import for_keyvalue, target_names

DISTRIBUTIONS = ("uniform", "zipfian", "sequential")
KEY_TYPES = ("int", "text", "blob")
LOOPS = ("native", "python")
CHECKPOINT_MODES = ("none", "passive", "restart", "truncate")


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """What happens to the WAL beside the load, by processes of their own."""

    mode: str = option(
        choice(*CHECKPOINT_MODES),
        "none",
        SQLITE,
        f"How a process of its own checkpoints: {either(CHECKPOINT_MODES[1:])}; "
        "the workers' autocheckpoint is 0 then.",
        name="checkpointer",
        metavar="MODE",
    )
    interval_s: float = option(
        duration_with_unit(0.001),
        "20ms",
        SQLITE,
        "Pause between two checkpoints, and between two looks at the WAL, with its unit.",
        name="checkpoint-interval",
        metavar="TIME",
        meaning="Pause between two checkpoints, and between two looks at the WAL, in seconds.",
    )
    pinned_reader: bool = option(
        switch,
        False,
        SQLITE,
        "One more process holds a snapshot open: shows what starves a checkpoint.",
        flag=True,
        meaning="Whether one more process holds a snapshot open over the whole window.",
    )


@dataclass(frozen=True, slots=True)
class Load:
    """What the workers of a key-value case do."""

    read_ratio: float = option(
        ratio, "50%", LOAD, "Share of gets: 90% or 0.9.", metavar="SHARE", meaning="Share of gets, 0 to 1."
    )
    update_ratio: float = option(
        ratio,
        "0%",
        LOAD,
        "Share of transactions that read a counter and write it plus one: 20% or 0.2.",
        metavar="SHARE",
        meaning="Share of transactions that read a counter and write it plus one, 0 to 1.",
    )
    key_space: int = option(whole(1, 10**8), 100_000, LOAD, "Number of keys, all preloaded.")
    distribution: str = option(
        choice(*DISTRIBUTIONS),
        "uniform",
        LOAD,
        f"How keys are drawn: {either(DISTRIBUTIONS)}.",
        metavar="NAME",
    )
    key_type: str = option(
        choice(*KEY_TYPES), "int", LOAD, f"Type of the keys: {either(KEY_TYPES)}.", metavar="TYPE"
    )
    value_size: int = option(whole(8, 1 << 20), 8, LOAD, "Bytes in a value, 8 or more.", metavar="BYTES")
    batch: int = option(whole(1, 100_000), 1, LOAD, "Replaces in a transaction.")
    begin: str = option(
        choice(*BEGINS),
        "immediate",
        LOAD,
        f"How a transaction of several statements begins: {either(BEGINS)}.",
        metavar="HOW",
    )
    loop: str = option(
        choice(*LOOPS),
        None,
        LOAD,
        "What drives the load: native (C, in the driver's library) or python; native where it can be had.",
        metavar="LOOP",
        meaning="What drove the load: native, in C, or python.",
        unsaid="python",
    )
    where: bool = option(
        switch,
        False,
        TRUST,
        "Tell where the time of an operation goes, and who held the lock.",
        flag=True,
        meaning="Whether it is told where the time of an operation goes, and who held the lock.",
    )
    checkpointing: Checkpointing | None = None
    """What processes beside the workers do to the WAL; None: there are none."""


_UNSAID = Server()


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that only say which cases there are."""

    preset: str | None = option(
        choice("classic"), None, TRUST, "classic: the published script's measurement.", metavar="NAME"
    )
    target: tuple[str, ...] | None = target_option(target_names(for_keyvalue()))
    anyway: bool = anyway_option()
    checkpointing: Checkpointing = Checkpointing()
    """What is asked for beside the load."""
    server: Server = _UNSAID
    """What is said of a server."""
