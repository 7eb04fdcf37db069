"""What workers do, and what must be true afterwards. Each workload has two halves."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, cast

from sqlstress.case import Case
from sqlstress.workloads.base import Source, Work

WORKLOADS = {
    "kv": ("sqlstress.workloads.kv.work:KeyValueWork", "sqlstress.workloads.kv.transactions:open_source"),
    "classic": (
        "sqlstress.workloads.kv.classic_work:ClassicWork",
        "sqlstress.workloads.kv.classic:ClassicSource",
    ),
}
"""Name → (the parent's half, the worker's half), as import strings."""


def _load(target: str) -> Any:
    module, name = target.split(":")
    return getattr(import_module(module), name)


def open_work(case: Case, folder: Path, salt: int, carry: dict[Any, Any]) -> Work:
    """Make the parent's half of one trial; `carry` lives as long as the whole measurement."""
    return cast(Work, _load(WORKLOADS[case.workload][0])(case, folder, salt, carry))


def open_source(case: Case, folder: Path, worker: int, salt: int, shared: tuple[Any, ...]) -> Source:
    """Open a worker's half: connects to the store."""
    return cast(Source, _load(WORKLOADS[case.workload][1])(case, folder, worker, salt, shared))
