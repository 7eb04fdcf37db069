"""Multi-process concurrency stress tests for SQLite.

    import sqlstress

    report = sqlstress.measure(concurrency="1-8", buckets=20)
    report = sqlstress.read("report.json")

Public names are imported when first used, because worker processes import this module and need none of them.
"""

_NAMES = {
    "sqlstress.api": ("Figure", "Finding", "Report", "ab", "hunt", "limit", "measure", "read"),
    "sqlstress.engine.study": ("Progress",),
    "sqlstress.errors": ("SqlstressError", "UsageError"),
    "sqlstress.report.case": ("Case",),
    "sqlstress.report.results": ("Run", "Trial"),
    "sqlstress.user_work.loading": ("check", "connect", "finish", "setup", "transaction"),
    "sqlstress.user_work.notes": ("Notes", "conserved", "counter", "exactly_once", "note"),
    "sqlstress.version": ("__version__",),
}
"""Public names, by the module that defines them."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlstress.api import Figure, Finding, Report, ab, hunt, limit, measure, read
    from sqlstress.engine.study import Progress
    from sqlstress.errors import SqlstressError, UsageError
    from sqlstress.report.case import Case
    from sqlstress.report.results import Run, Trial
    from sqlstress.user_work.loading import check, connect, finish, setup, transaction
    from sqlstress.user_work.notes import Notes, conserved, counter, exactly_once, note
    from sqlstress.version import __version__

__all__ = [
    "Case", "Figure", "Finding", "Notes", "Progress", "Report", "Run", "SqlstressError", "Trial",
    "UsageError", "__version__", "ab", "check", "connect", "conserved", "counter", "exactly_once", "finish",
    "hunt", "limit", "measure", "note", "read", "setup", "transaction",
]  # fmt: skip


if not TYPE_CHECKING:  # type checkers must report names that do not exist

    def __getattr__(name: str) -> object:
        for module, names in _NAMES.items():
            if name in names:
                from importlib import import_module

                return getattr(import_module(module), name)
        raise AttributeError(f"module 'sqlstress' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
