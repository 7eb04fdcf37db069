"""Exceptions of sqlstress, whose messages the command line prints.

Exit codes: 0: no problem; 1: wrong data or a regression; 2: invalid use; 3: no answer; 4: the environment or
a worker failed; 130: interrupted.
"""

from __future__ import annotations


class SqlstressError(Exception):
    """Base class of all exceptions. The message states the event, the kept data and the remedy."""

    exit_code = 4
    """Exit code of the command line."""


class UsageError(SqlstressError):
    """Invalid option or plan."""

    exit_code = 2


class NoWork(UsageError):
    """The user named no file or command to measure."""

    def __init__(self, typed: str, assigned: str) -> None:
        """`typed` is the message for a command line, `assigned` for a plan or a call in Python."""
        super().__init__(typed)
        self.assigned = assigned


class NotInstalled(UsageError):
    """The requested driver is not installed."""

    def __init__(self, driver: str, package: str, error: ImportError | None = None) -> None:
        """`package` is the driver's name for pip; empty if pip cannot install it."""
        self.driver, self.package = driver, package
        reason = f" ({error})" if error else ""
        remedy = f"python -m pip install {package}" if package else "a Python that has it"
        super().__init__(
            f"the driver {driver} is not installed{reason}. Use {remedy}, or choose another --driver."
        )


class EnvironmentFailure(SqlstressError):
    """This machine, folder or SQLite build cannot do what was requested."""

    exit_code = 4


class Interrupted(SqlstressError):
    """The user (Ctrl-C) or the system (a signal) stopped the measurement."""

    exit_code = 130


def error_message(error: BaseException) -> str:
    """Return the message of an exception; for invalid UTF-8, quote the beginning of the text."""
    if isinstance(error, UnicodeDecodeError):
        return f"no UTF-8: {error.object.decode(errors='replace'):.200}"
    return str(error)


def plainly(error: BaseException) -> str:
    """Return an error as text: message, preceded by the class unless it is a SqlstressError.

    A MemoryError becomes "out of memory".
    """
    if isinstance(error, SqlstressError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {error_message(error)}".removesuffix(": ")
