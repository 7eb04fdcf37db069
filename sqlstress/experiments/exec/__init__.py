"""Any command of the user's, N processes at once on one database.

Its workers tell how commands ended and what they said in sightings, whose topics these are.
"""

EXIT_CODE, STDERR, ENDED = "exit code", "standard error", "ended"
TOO_LATE, LEFT_BEHIND, ESCAPED = "--timeout", "left behind", "out of reach"
"""Why something was ended: a command took too long; processes outlived it; no worker could reach them."""
