"""Exceptions, each with its exit code. Only the command line prints their texts.

Exit codes: 0 fine; 1 an integrity failure or a regression; 2 usage; 3 inconclusive;
4 the environment or a worker failed; 130 interrupted.
"""

from __future__ import annotations


class SqlstressError(Exception):
    """Base class. The message has one or two lines: the event, the data kept, the remedy."""

    exit_code = 4


class UsageError(SqlstressError):
    """Invalid option or plan."""

    exit_code = 2


class NoWork(UsageError):
    """Missing argument: the file or command to measure."""

    def __init__(self, typed: str, assigned: str) -> None:
        """`typed` is the message for the command line, `assigned` the message for plans and for Python."""
        super().__init__(typed)
        self.assigned = assigned


class NotInstalled(UsageError):
    """Requested driver that is not installed."""

    def __init__(self, driver: str, package: str, error: ImportError | None = None) -> None:
        """`package` is its name for pip; empty if the driver comes with Python or cannot be installed."""
        self.driver, self.package = driver, package
        reason = f" ({error})" if error else ""
        remedy = f"python -m pip install {package}" if package else "a Python that has it"
        super().__init__(
            f"the driver {driver} is not installed{reason}. Use {remedy}, or choose another --driver."
        )


class EnvironmentFailure(SqlstressError):
    """Request that this machine, folder or SQLite build cannot satisfy."""

    exit_code = 4


class Interrupted(SqlstressError):
    """Stop by the user or the system."""

    exit_code = 130


def error_message(error: BaseException) -> str:
    """Return the message of an exception; if bytes of a damaged file are not UTF-8, show them."""
    if isinstance(error, UnicodeDecodeError):
        return f"no UTF-8: {error.object.decode(errors='replace'):.200}"
    return str(error)


def plainly(error: BaseException) -> str:
    """Return an error as text: the message of a SqlstressError, or another error's class and message."""
    if isinstance(error, SqlstressError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {error_message(error)}".removesuffix(": ")
