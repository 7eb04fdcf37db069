"""Description of a measurement's environment: host, file system, cost of a sync, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlstress.machine import host, sync_cost
from sqlstress.machine.warnings import MachineFacts, durability_settings, warn
from sqlstress.report import Environment, SqliteBuild
from sqlstress.report.case import Settings

__all__ = ["fingerprint"]


def fingerprint(
    folder: Path,
    builds: Sequence[SqliteBuild],
    settings: Sequence[Settings],
    most_workers: int,
    not_native: Sequence[str] = (),
    sync_budget_ns: int = sync_cost.BUDGET_NS,
    waiting: Sequence[str] = (),
) -> Environment:
    """Measure and return the environment of databases in `folder`, in about 0.3 s on a common disk.

    `not_native` has reasons why a load that suits the C loop runs in Python. `sync_budget_ns` limits the time
    for measuring syncs. For each driver in `waiting`, a wait for a lock is measured, which takes 0.05 s, or
    up to 3 s if the library waits in steps of a second. Raises EnvironmentFailure if `folder` is not
    writable.
    """
    machine = host.describe_host()
    mounted = host.file_system_of(folder)
    full = any(durability_settings(setting).fullfsync for setting in settings)
    sync = sync_cost.measure(folder, sync_cost.sync_calls(machine.system, full), budget_ns=sync_budget_ns)
    facts = MachineFacts(
        machine, mounted, tuple(builds), sync, tuple(settings), most_workers, tuple(not_native)
    )
    from sqlstress.machine.lock_wait import wait_warnings

    warnings = (*wait_warnings(waiting, folder), *warn(facts))
    return Environment(machine, mounted, tuple(builds), sync, warnings)
