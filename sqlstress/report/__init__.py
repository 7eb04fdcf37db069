"""What is saved: the Report, its Runs and Trials, and the fingerprint of where they were measured.

A module of it is imported when one of its names is asked for: a worker, or help, needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlstress.report.document import FORMAT_VERSION, Report, from_json, read, to_json
    from sqlstress.report.environment import Environment, FileSystem, Host, SqliteBuild, SyncCost, Warning
    from sqlstress.report.results import Arrived, Check, Latency, Run, Trial, Verdict, WorkerResult
    from sqlstress.report.saving import write_atomically
    from sqlstress.report.space import Portion, Space, TreeSpace
    from sqlstress.report.study_results import AbTest, Arm, LimitSearch, Look, Promise

_PLACES = {
    "document": ("FORMAT_VERSION", "Report", "from_json", "read", "to_json"),
    "environment": ("Environment", "FileSystem", "Host", "SqliteBuild", "SyncCost", "Warning"),
    "results": ("Arrived", "Check", "Latency", "Run", "Trial", "Verdict", "WorkerResult"),
    "saving": ("write_atomically",),
    "space": ("Portion", "Space", "TreeSpace"),
    "study_results": ("AbTest", "Arm", "LimitSearch", "Look", "Promise"),
}
"""Module → the names that it gives to the room."""


def __getattr__(name: str) -> Any:
    place = next((module for module, names in _PLACES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{place}"), name)


__all__ = [
    "FORMAT_VERSION",
    "AbTest",
    "Arm",
    "Arrived",
    "Check",
    "Environment",
    "FileSystem",
    "Host",
    "Latency",
    "LimitSearch",
    "Look",
    "Portion",
    "Promise",
    "Report",
    "Run",
    "Space",
    "SqliteBuild",
    "SyncCost",
    "TreeSpace",
    "Trial",
    "Verdict",
    "Warning",
    "WorkerResult",
    "from_json",
    "read",
    "to_json",
    "write_atomically",
]
