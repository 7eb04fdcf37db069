"""The experiment `exec`: any command of the user, N at once on one database.

Workers report observations of their commands, each with a topic and a kind. This module defines the topics
and kinds.
"""

EXIT_CODE, STDERR, ANSWER, ENDED = "exit code", "standard error", "answer", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED, STAYED = "--timeout", "left behind", "out of reach", "stayed"
"""Kinds of the topic "ended": reasons for which sqlstress killed processes.

TOO_LATE: a command exceeded its time limit. LEFT_BEHIND: processes continued after their command had ended.
ESCAPED: no worker could reach the processes any more. STAYED: with --lines, a program continued after its
input or output had ended.
"""
MOMENTS, OPEN, CLOSED = "moments", "database open", "database not open"
"""Topic of the samples of running commands, and the two kinds of samples: the command had the database open,
or it had not."""
UNUSED, ORIGINAL = "copy not used", "original changed"
"""Topics of observations. UNUSED: no command had the copy of --database open. ORIGINAL: an unknown program
changed the original."""
