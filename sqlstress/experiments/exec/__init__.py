"""The experiment `exec`: any command of the user, N at once on one database.

Workers report observations of their commands, each with a topic and a kind. This module defines the topics
and kinds.
"""

EXIT_CODE, STDERR, ANSWER, ENDED = "exit code", "standard error", "answer", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED, STAYED = "--timeout", "left behind", "out of reach", "stayed"
"""Kinds of the topic "ended", reasons for killing processes: a command took too long; processes outlived a
command; no worker could reach the processes any more; with --lines, a program continued after its input or
output had ended."""
MOMENTS, OPEN, CLOSED = "moments", "database open", "database not open"
"""Topic and kinds of samples of a running command: it had the database open, or not."""
UNUSED, ORIGINAL = "copy not used", "original changed"
"""Topics: no command had the copy of --database open; an unknown program changed the original."""
