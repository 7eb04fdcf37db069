"""What can go wrong, each with its exit code. The command line prints the text; nothing else does.

Exit codes: 0 fine; 1 an integrity failure or a regression; 2 usage; 3 inconclusive;
4 the environment or a worker failed; 130 interrupted.
"""

from __future__ import annotations


class SqlstressError(Exception):
    """Says what happened, what was kept and what to do next, in one or two lines."""

    exit_code = 4


class UsageError(SqlstressError):
    """An option or a plan that cannot be carried out as it stands."""

    exit_code = 2


class NoWork(UsageError):
    """The file or the command that is to be measured is missing."""

    def __init__(self, typed: str, assigned: str) -> None:
        """`typed` is the message for the command line, `assigned` the message for plans and for Python."""
        super().__init__(typed)
        self.assigned = assigned


class NotInstalled(UsageError):
    """A driver that is chosen and not there."""

    def __init__(self, driver: str, package: str, error: ImportError | None = None) -> None:
        """`package` is what pip installs it with; "" for what comes with Python or not at all."""
        self.driver, self.package = driver, package
        why = f" ({error})" if error else ""
        remedy = f"python -m pip install {package}" if package else "a Python that has it"
        super().__init__(
            f"the driver {driver} is not installed{why}. Use {remedy}, or choose another --driver."
        )


class EnvironmentFailure(SqlstressError):
    """This machine, folder or SQLite build cannot do what was asked."""

    exit_code = 4


class Interrupted(SqlstressError):
    """The user or the system asked us to stop."""

    exit_code = 130


def message_of(error: BaseException) -> str:
    """Return what an exception says; where bytes of a damaged file are no text, what they hold."""
    if isinstance(error, UnicodeDecodeError):
        return f"no UTF-8: {error.object.decode(errors='replace'):.200}"
    return str(error)


def plainly(error: BaseException) -> str:
    """Return what went wrong: an error of ours in its own words, any other with the name of its kind."""
    if isinstance(error, SqlstressError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
