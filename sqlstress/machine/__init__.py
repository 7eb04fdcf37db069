"""Where a measurement runs: the host, the file system, what one sync costs, and what to be warned of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlstress.machine import host, sync_cost
from sqlstress.machine.warnings import Facts, durability_settings, warn
from sqlstress.report import Environment, SqliteBuild
from sqlstress.report.case import Settings

__all__ = ["fingerprint"]


def fingerprint(
    folder: Path,
    builds: Sequence[SqliteBuild],
    settings: Sequence[Settings],
    most_workers: int,
    not_native: Sequence[str] = (),
) -> Environment:
    """Describe the surroundings of databases in a folder; takes about a third of a second on a usual disk.

    `builds` are the SQLite libraries that will be used, none for a driver that stores nothing;
    `settings` and `most_workers` are those of all planned cases, for the warnings; `not_native` says why
    the loop in Python drives a load although one in C could.
    Raises EnvironmentFailure when the folder can't be written.
    """
    machine = host.describe()
    mounted = host.file_system_of(folder)
    full = any(durability_settings(each).fullfsync for each in settings)
    sync = sync_cost.measure(folder, sync_cost.primitives(machine.system, full))
    facts = Facts(machine, mounted, tuple(builds), sync, tuple(settings), most_workers, tuple(not_native))
    return Environment(machine, mounted, tuple(builds), sync, warn(facts))
