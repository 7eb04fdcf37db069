"""Report of a measurement: runs and trials, environment, conversion to JSON and back.

A submodule is imported when one of its names is first used, so that workers and `--help` start faster.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlstress.report.document import FORMAT_VERSION, Report, from_json, read, to_json, write_atomically
    from sqlstress.report.environment import Environment, FileSystem, Host, SqliteBuild, SyncCost, Warning
    from sqlstress.report.file_space import Space, TreeSpace
    from sqlstress.report.results import (
        LEFT_OUT,
        Arrived,
        Check,
        Failures,
        Latency,
        Run,
        Throttling,
        Trial,
        Verdict,
        WorkerResult,
    )
    from sqlstress.report.study_results import AbTest, Arm, LimitSearch, Look, Promise

__all__ = [
    "FORMAT_VERSION", "LEFT_OUT", "AbTest", "Arm", "Arrived", "Check", "Environment", "Failures",
    "FileSystem", "Host", "Latency", "LimitSearch", "Look", "Promise", "Report", "Run", "Space",
    "SqliteBuild", "SyncCost", "Throttling", "TreeSpace", "Trial", "Verdict", "Warning", "WorkerResult",
    "from_json", "read", "to_json", "write_atomically",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module in ("environment", "file_space", "results", "study_results", "document"):
        if name in __all__ and name in vars(imported := import_module(f"{__name__}.{module}")):
            return vars(imported)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
