"""The experiment `exec`, which runs the user's command, and the topics of its observations.

An observation (class Sighting) has a topic, a kind within the topic (`what`), and facts (`traits`).
"""

from typing import NamedTuple

EXIT_CODE, STDERR, ANSWER, ENDED = "exit code", "standard error", "answer", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED, STAYED = "--timeout", "left behind", "out of reach", "stayed"
"""Reasons for which sqlstress killed processes.

TOO_LATE: a command exceeded its time limit. LEFT_BEHIND: processes in the command's process group outlived
the command. ESCAPED: processes had left this group, and were found at the end of the trial. STAYED: the
program of --lines, which is started once and receives lines, ran on after the end of its input or output.
"""
MOMENTS, OPEN, CLOSED, SLEEPING = "moments", "database open", "database not open", "asleep"
"""MOMENTS: topic of the samples of a running command. The others: states of the command in a sample.

OPEN: a process of the command has the database open. CLOSED: no process has it open, and at least one runs.
SLEEPING: no process has the database open, and all sleep, for example in a wait for flock.
"""
DELETED_LOCK = "deleted lock file"
"""Topic of observations on commands that held a lock on a deleted file: `what` is the file's name."""
TOUCHED = "database copied or moved"
"""Topic of programs that copied, moved, replaced or deleted the database file in use.

The traits are the file, the program and, if known, the place where a script runs the program: file and line.
"""
TIMEOUTS = "busy timeouts"
"""Topic of busy timeouts in the text of commands that printed a lock error; the traits are `Timeouts`."""
UNUSED, ORIGINAL = "copy not used", "original changed"
"""Topics: no command opened the copy of --database; another program changed the original."""


class Timeouts(NamedTuple):
    """Facts in the text of a command on busy timeouts and transactions. Fields are empty if unknown."""

    short: str = ""
    """Busy timeout that is too short, such as "PRAGMA busy_timeout = 5" (milliseconds)."""
    short_at: str = ""
    """File and line of the busy timeout that is too short, such as "import.sh:9"."""
    short_ms: str = ""
    """Value of the busy timeout that is too short, in ms."""
    seconds: str = ""
    """"yes" if a busy timeout is too short because its value is in seconds, not in ms; else empty."""
    shells: str = ""
    """"yes" if the text starts SQLite's shell on the database; else empty."""
    unset_at: str = ""
    """File and line of the first start of SQLite's shell without a busy timeout."""
    bail: str = ""
    """"yes" if every start of SQLite's shell has -bail; else empty."""
    deferred: str = ""
    """"yes" if a transaction begins with BEGIN, BEGIN DEFERRED or SAVEPOINT; else empty."""
