"""What the options of the key-value experiment mean: its cases, layouts outside, concurrencies inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.plan.settings import check_locking, is_exclusive, settings_of
from sqlstress.report.case import Case, Load
from sqlstress.report.parts import Checkpointing

MOST_DATA = 1 << 40
"""Bytes of all values together, each key's being preloaded."""
MOST_WRITTEN = 1 << 30
"""Bytes that a transaction writes: the worker holds them in memory."""

CLASSIC: Mapping[str, Any] = {
    "duration": None,
    "warmup": None,
    "ops": 5000,
    "read-ratio": 0.5,
    "update-ratio": 0.0,
    "key-space": (1 << 31) + 1,
    "distribution": "uniform",
    "key-type": "int",
    "value-size": 8,
    "batch": 1,
    "begin": "deferred",
    "journal-mode": "wal",
    "synchronous": None,
    "fullfsync": None,
    "wal-autocheckpoint": None,
    "page-size": None,
    "cache-size": None,
    "mmap-size": None,
    "pragma": (),
    "busy-timeout": 60.0,
    "busy": "default",
    "checkpointer": "none",
    "pinned-reader": False,
}
"""What `--preset classic` fixes: the published script's measurement; None: left alone."""


def cases(values: dict[str, Any], asked: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases: `values` holds every option, parsed; `asked` only those that were given.

    Raises UsageError when options contradict each other.
    """
    if values["preset"] == "classic":
        _refuse_contradictions(asked)
        values = {**values, **CLASSIC}
    else:
        _check_together(values, asked)
    for buckets in values["buckets"]:
        for concurrency in values["concurrency"]:
            yield _case(values, concurrency, buckets)


def _refuse_contradictions(asked: Mapping[str, Any]) -> None:
    for name, value in asked.items():
        if name in CLASSIC and value != CLASSIC[name]:
            raise UsageError(
                f"--{name} contradicts --preset classic, which {_fixed(name)}. Leave one of them out."
            )


def _fixed(name: str) -> str:
    value = CLASSIC[name]
    return "leaves it unset" if value in (None, ()) else f"fixes it at {value}"


def _check_together(values: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    if values["read-ratio"] + values["update-ratio"] > 1 + 1e-9:
        raise UsageError(
            "--read-ratio and --update-ratio add up to more than 1. Lower one of them; the rest are replaces."
        )
    if values["batch"] > values["key-space"]:
        raise UsageError("--batch is larger than --key-space: a transaction writes distinct keys.")
    for name, most, bound in (("key-space", MOST_DATA, "1 TiB"), ("batch", MOST_WRITTEN, "1 GiB")):
        if values[name] * values["value-size"] > most:
            raise UsageError(f"--{name} times --value-size is more than {bound}: lower one of them.")
    for name in ("duration", "warmup"):
        if values["ops"] is not None and name in asked:
            raise UsageError(f"--ops takes the place of a window: leave out --ops or --{name}.")
    if "begin" in asked and values["batch"] == 1 and not values["update-ratio"]:
        raise UsageError(
            "--begin is of transactions of several statements: give --batch or --update-ratio, or leave it."
        )
    if values["checkpointer"] != "none" or values["pinned-reader"]:
        _check_checkpointing(values, asked)
    elif "checkpoint-interval" in asked:
        raise UsageError("--checkpoint-interval needs --checkpointer or --pinned-reader.")
    check_locking(values)


def _check_checkpointing(values: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse what a process beside the workers can't do."""
    which = "--checkpointer" if values["checkpointer"] != "none" else "--pinned-reader"
    if values["journal-mode"] != "wal":
        raise UsageError(f"{which} needs a WAL: leave out --journal-mode {values['journal-mode']}.")
    if values["driver"] == "dry":
        raise UsageError(f"{which} needs a database: the dry driver stores nothing.")
    if is_exclusive(values):
        raise UsageError(f"{which} is a process of its own, and locking_mode=exclusive lets one in.")
    if values["checkpointer"] != "none" and asked.get("wal-autocheckpoint"):
        raise UsageError(
            "--checkpointer takes the workers' checkpoints from them: leave out --wal-autocheckpoint."
        )


def _case(values: Mapping[str, Any], concurrency: int, buckets: int) -> Case:
    return Case(
        workload="classic" if values["preset"] == "classic" else "kv",
        driver=values["driver"],
        concurrency=concurrency,
        buckets=buckets,
        duration_s=values["duration"] or 0.0,
        warmup_s=0.0 if values["ops"] is not None else values["warmup"],
        ops=values["ops"],
        repeat=values["repeat"],
        seed=values["seed"],
        verify=values["verify"],
        settings=settings_of(_without_checkpoints(values)),
        load=_load(values),
        checkpointing=_checkpointing(values),
    )


def _without_checkpoints(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values with autocheckpoint 0 where another process checkpoints."""
    return values if values["checkpointer"] == "none" else {**values, "wal-autocheckpoint": 0}


def _checkpointing(values: Mapping[str, Any]) -> Checkpointing | None:
    if values["checkpointer"] == "none" and not values["pinned-reader"]:
        return None
    return Checkpointing(values["checkpointer"], values["checkpoint-interval"], values["pinned-reader"])


def _load(values: Mapping[str, Any]) -> Load:
    return Load(
        read_ratio=values["read-ratio"],
        update_ratio=values["update-ratio"],
        key_space=values["key-space"],
        distribution=values["distribution"],
        key_type=values["key-type"],
        value_size=values["value-size"],
        batch=values["batch"],
        begin=values["begin"],
    )
