"""The experiment `exec`, and the topics and kinds of observations that its workers report."""

from sqlstress.sqlite_codes import CANTOPEN, CORRUPT, IOERR, NOTADB

EXIT_CODE, STDERR, ANSWER, ENDED = "exit code", "standard error", "answer", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED, STAYED = "--timeout", "left behind", "out of reach", "stayed"
"""Kinds of "ended", the reasons for which sqlstress killed processes.

TOO_LATE: time limit exceeded. LEFT_BEHIND: processes outlived their command. ESCAPED: processes were out of
reach of their worker. STAYED: with --lines, the program ran on after the end of its input or output.
"""
MOMENTS, OPEN, CLOSED = "moments", "database open", "database not open"
"""Topic of the samples of running commands, and its kinds."""
UNUSED, ORIGINAL = "copy not used", "original changed"
"""Topics: no command opened the copy of --database; an unknown program changed the original."""
DAMAGE_CODES = CANTOPEN, IOERR, CORRUPT, NOTADB
"""Errors of SQLite in programs whose database is used without locks, or whose WAL was deleted."""
