"""Multi-process concurrency stress tests for SQLite.

    import sqlstress

    report = sqlstress.measure(concurrency="1-8", buckets=20)
    report = sqlstress.read("report.json")

What it offers is imported when it is asked for: a worker process imports this module too.
"""

__version__ = "0.1.0"

_OFFERED = {
    "Case": "sqlstress.report.case",
    "Figure": "sqlstress.api",
    "Finding": "sqlstress.api",
    "Progress": "sqlstress.engine.study",
    "Report": "sqlstress.api",
    "Run": "sqlstress.report.results",
    "SqlstressError": "sqlstress.errors",
    "Trial": "sqlstress.report.results",
    "UsageError": "sqlstress.errors",
    "ab": "sqlstress.api",
    "check": "sqlstress.user_work.loading",
    "connect": "sqlstress.user_work.loading",
    "limit": "sqlstress.api",
    "measure": "sqlstress.api",
    "read": "sqlstress.api",
    "setup": "sqlstress.user_work.loading",
    "transaction": "sqlstress.user_work.loading",
}
"""Name → the module that has it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlstress.api import Figure, Finding, Report, ab, limit, measure, read
    from sqlstress.engine.study import Progress
    from sqlstress.errors import SqlstressError, UsageError
    from sqlstress.report.case import Case
    from sqlstress.report.results import Run, Trial
    from sqlstress.user_work.loading import check, connect, setup, transaction

__all__ = [
    "Case",
    "Figure",
    "Finding",
    "Progress",
    "Report",
    "Run",
    "SqlstressError",
    "Trial",
    "UsageError",
    "__version__",
    "ab",
    "check",
    "connect",
    "limit",
    "measure",
    "read",
    "setup",
    "transaction",
]


if not TYPE_CHECKING:  # a type checker is to find a name that is not there

    def __getattr__(name: str) -> object:
        if name not in _OFFERED:
            raise AttributeError(f"module 'sqlstress' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_OFFERED[name]), name)


def __dir__() -> list[str]:
    return __all__
