"""The experiment `exec`, which runs the user's command, and the topics of its observations.

An observation (class Sighting) has a topic, a kind within the topic (`what`), and facts (`traits`).
"""

from typing import NamedTuple

EXIT_CODE, STDERR, ANSWER, ENDED = "exit code", "standard error", "answer", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED, STAYED = "--timeout", "left behind", "out of reach", "stayed"
"""Reasons for which sqlstress killed processes.

TOO_LATE: time limit exceeded. LEFT_BEHIND: processes outlived their command. ESCAPED: processes had left the
process group of their command. STAYED: with --lines, the program ran on after the end of its input or output.
"""
MOMENTS, OPEN, CLOSED, SLEEPING = "moments", "database open", "database not open", "asleep"
"""Topic of the samples of running commands, and the kinds of samples.

SLEEPING: no process of the command has the database open, and all sleep, for example in a wait for a lock.
"""
DELETED_LOCK = "deleted lock file"
"""Topic of commands that held the lock of a deleted file; the kind is the name of the file."""
TOUCHED = "database copied or moved"
"""Topic of programs that copied, moved, replaced or deleted the database file in use.

The traits are the file, the program and the line of a script that runs the program, if known.
"""
TIMEOUTS = "busy timeouts"
"""Topic of busy timeouts in the text of commands that printed a lock error; the traits are `Timeouts`."""
UNUSED, ORIGINAL = "copy not used", "original changed"
"""Topics: no command opened the copy of --database; an unknown program changed the original."""


class Timeouts(NamedTuple):
    """Facts in the text of a command on busy timeouts and transactions. Fields are empty if unknown."""

    short: str = ""
    """Busy timeout that is too short, such as "PRAGMA busy_timeout = 5" (milliseconds)."""
    short_at: str = ""
    """File and line of the short timeout, such as "import.sh:9"."""
    short_ms: str = ""
    """Value of the short timeout, in ms."""
    seconds: str = ""
    """"yes" if the text gives the short timeout in seconds; else empty."""
    shells: str = ""
    """"yes" if the text starts SQLite's shell on the database; else empty."""
    unset_at: str = ""
    """File and line of the first start of SQLite's shell without a busy timeout."""
    bail: str = ""
    """"yes" if every start of SQLite's shell has -bail; else empty."""
    deferred: str = ""
    """"yes" if a transaction begins with BEGIN, BEGIN DEFERRED or SAVEPOINT; else empty."""
