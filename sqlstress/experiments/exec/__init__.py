"""The experiment `exec`, and the topics and kinds of observations that its workers report."""

from typing import NamedTuple

EXIT_CODE, STDERR, ANSWER, ENDED = "exit code", "standard error", "answer", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED, STAYED = "--timeout", "left behind", "out of reach", "stayed"
"""Kinds of "ended", the reasons for which sqlstress killed processes.

TOO_LATE: time limit exceeded. LEFT_BEHIND: processes outlived their command. ESCAPED: processes were out of
reach of their worker. STAYED: with --lines, the program ran on after the end of its input or output.
"""
MOMENTS, OPEN, CLOSED, SLEEPING = "moments", "database open", "database not open", "asleep"
"""Topic of the samples of running commands, and its kinds. SLEEPING: without the database open, all processes
of the command slept, for example in a wait for a lock of a file."""
DELETED_LOCK = "deleted lock file"
"""Topic of the commands that held the lock of a deleted file; the kind is the name of the file."""
TOUCHED = "database copied or moved"
"""Topic of the programs that copied the database file in use, or moved, replaced or deleted it (see
`sqlstress.user_work.COPIED` and MOVED). The traits are the program and its place in the text; both may be
empty."""
TIMEOUTS = "busy timeouts"
"""Topic of the busy timeouts in the text of a command whose lock was refused; the traits are `Timeouts`."""
UNUSED, ORIGINAL = "copy not used", "original changed"
"""Topics: no command opened the copy of --database; an unknown program changed the original."""


class Timeouts(NamedTuple):
    """Busy timeouts and transactions in the text of a command. A field is empty if the text lacks it."""

    short: str = ""
    """Text of a timeout that is too short, such as "PRAGMA busy_timeout = 5"."""
    short_at: str = ""
    """Place of this text."""
    short_ms: str = ""
    """Value of this timeout, in ms."""
    seconds: str = ""
    """"yes" if the text has this timeout in seconds."""
    shells: str = ""
    """"yes" if the text starts SQLite's shell on the database."""
    unset_at: str = ""
    """Place of the first such start that sets no busy timeout."""
    bail: str = ""
    """"yes" if each such start has -bail."""
    deferred: str = ""
    """"yes" if a transaction begins with BEGIN, BEGIN DEFERRED or SAVEPOINT."""
