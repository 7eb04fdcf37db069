"""What the options of crash tests mean where power is cut: a case for each configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.plan.settings import is_exclusive, settings_of
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS, Case, Load

OWN = ("images", "disk", "psow")
"""Options that mean something only here."""
_OTHERS = ("rounds", "batch", "value-size", "begin", "mmap-size", "busy-timeout", "busy")
"""Options that mean nothing here."""
_VARIED = ("journal-mode", "synchronous")
MOST_FILES = 100
"""Every image has all of them."""
MOST_CONNECTIONS = 200
"""Of one process, to all files together."""
AUTOCHECKPOINT = 20
"""Frames after which a checkpoint begins, unless told otherwise: so that power is cut in many of them."""


def cases(values: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases: `values` holds every option, parsed. Raises UsageError when options don't fit."""
    _check(values, asked)
    frames = values["wal-autocheckpoint"] if "wal-autocheckpoint" in asked else AUTOCHECKPOINT
    case = Case(
        workload="crash",
        driver="apsw",
        concurrency=values["concurrency"],
        buckets=values["buckets"],
        duration_s=0.0,
        warmup_s=0.0,
        seed=values["seed"],
        verify="full",
        settings=replace(settings_of(values), wal_autocheckpoint=frames, busy_timeout_ms=0),
        load=Load(read_ratio=0.0),
    )
    if not values["matrix"]:
        yield case
        return
    for mode in JOURNAL_MODES:
        for level in SYNCHRONOUS:
            yield replace(case, settings=replace(case.settings, journal_mode=mode, synchronous=level))


def _check(values: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    for name in _OTHERS:
        if name in asked:
            raise UsageError(f"--{name} means nothing for power cuts: leave it out.")
    for name in _VARIED:
        if values["matrix"] and name in asked:
            raise UsageError(f"--matrix tries every --{name}: leave it out, or say --power.")
    if asked.get("driver", "apsw") != "apsw":
        raise UsageError("power cuts need --driver apsw: no other one lets us stand in for the disk.")
    if values["buckets"] > MOST_FILES or values["buckets"] * values["concurrency"] > MOST_CONNECTIONS:
        raise UsageError(
            f"power cuts take {MOST_FILES} files and {MOST_CONNECTIONS} connections to all of them at most: "
            "lower --buckets or --concurrency."
        )
    if is_exclusive(values) and values["concurrency"] > 1:
        raise UsageError(
            "PRAGMA locking_mode=exclusive lets one connection in: use it with --concurrency 1 only."
        )
