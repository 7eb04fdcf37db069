"""What workers do, and what must be true afterwards. Each workload has two halves."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sqlstress.engine.protocols import Companion, Source, Work

if TYPE_CHECKING:  # a worker process need not know what a report is
    from sqlstress.report import Run
    from sqlstress.report.case import Case
    from sqlstress.targets.place import Place


class Workload(NamedTuple):
    """Where the parts of a workload are, as import strings."""

    work: str | None
    """The parent's half; None: a study plays it, since its processes end in no trial."""
    source: str
    """The worker's half."""
    needless: str | None = None
    """(case, runs so far) → why the case need not be measured, or None."""


WORKLOADS = {
    "kv": Workload(
        "sqlstress.experiments.kv.work:KeyValueWork", "sqlstress.experiments.kv.worker:open_source"
    ),
    "classic": Workload(
        "sqlstress.experiments.kv.classic_work:ClassicWork", "sqlstress.experiments.kv.classic:ClassicSource"
    ),
    "methods": Workload(
        "sqlstress.experiments.methods.work:MethodsWork",
        "sqlstress.experiments.methods.worker:MethodsSource",
        "sqlstress.experiments.methods.needless:needless",
    ),
    "keys": Workload(
        "sqlstress.experiments.keys.work:KeysWork", "sqlstress.experiments.keys.worker:KeysSource"
    ),
    "cycles": Workload(
        "sqlstress.experiments.cycles.work:CyclesWork", "sqlstress.experiments.cycles.worker:CyclesSource"
    ),
    "crash": Workload(None, "sqlstress.experiments.crash.worker:CrashSource"),
}

COMPANIONS: dict[str, str] = {
    "checkpointer": "sqlstress.experiments.kv.beside.checkpointer:Checkpointer",
    "pinned reader": "sqlstress.experiments.kv.beside.pinned_reader:PinnedReader",
    "WAL watcher": "sqlstress.experiments.kv.beside.wal_watcher:WalWatcher",
    "cycle watcher": "sqlstress.experiments.cycles.watcher:CycleWatcher",
}
"""Processes that a workload may run beside its workers: name → import string."""


def _load(target: str) -> Any:
    module, name = target.split(":")
    return getattr(import_module(module), name)


def open_work(case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> Work:
    """Make the parent's half of one trial; `carry` lives as long as the whole measurement."""
    work = WORKLOADS[case.workload].work
    assert work
    return cast(Work, _load(work)(case, place, salt, carry))


def open_source(case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> Source:
    """Open a worker's half: connects to the store."""
    return cast(Source, _load(WORKLOADS[case.workload].source)(case, place, worker, salt, shared))


def open_companion(name: str, case: Case, place: Place, shared: tuple[Any, ...]) -> Companion:
    """Open a process's half that runs beside the workers."""
    return cast(Companion, _load(COMPANIONS[name])(case, place, shared))


def needless(case: Case, runs: Sequence[Run]) -> str | None:
    """Return why a case need not be measured after these runs; None when it must."""
    rule = WORKLOADS[case.workload].needless
    return cast("str | None", _load(rule)(case, runs)) if rule else None
