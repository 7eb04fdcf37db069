"""The experiment `exec`, and the topics and kinds of observations that its workers report."""

from sqlstress.sqlite_codes import CANTOPEN, CORRUPT, IOERR, NOTADB

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
UNUSED, ORIGINAL = "copy not used", "original changed"
"""Topics: no command opened the copy of --database; an unknown program changed the original."""
DAMAGE_CODES = CANTOPEN, IOERR, CORRUPT, NOTADB
"""Errors of SQLite in programs whose database is used without locks, or whose WAL was deleted."""
