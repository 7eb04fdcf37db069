"""Any command of the user, N at once on one database.

Workers report the ends and outputs of commands as sightings. Their topics are defined here.
"""

EXIT_CODE, STDERR, ANSWER, ENDED = "exit code", "standard error", "answer", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED, STAYED = "--timeout", "left behind", "out of reach", "stayed"
"""Reasons for killing processes: a command took too long; processes outlived a command; no worker could reach
them; with --lines, a program continued after its input or output had ended."""
MOMENTS, OPEN, CLOSED = "moments", "database open", "database not open"
"""Numbers of moments at which a running command had the database open, or not."""
UNUSED, ORIGINAL = "copy not used", "original changed"
"""No command had the copy of --database open; an unknown program changed the original."""
