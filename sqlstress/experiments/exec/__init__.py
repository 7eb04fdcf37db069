"""Any command of the user's, N processes at once on one database.

Its workers tell how commands ended and what they said in sightings, whose topics these are.
"""

EXIT_CODE, STDERR, ANSWER, ENDED = "exit code", "standard error", "answer", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED, STAYED = "--timeout", "left behind", "out of reach", "stayed"
"""Why something was ended: a command took too long; processes outlived it; no worker could reach them; with
--lines, a program went on after its input or output had ended."""
MOMENTS, OPEN, CLOSED = "moments", "database open", "database not open"
"""At how many moments a running command had the database open."""
UNUSED, ORIGINAL = "copy not used", "original changed"
"""No command had the copy of --database open; a program that was not seen changed the original."""
