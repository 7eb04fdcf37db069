"""How commands ended and what they said: the topics of their Sightings in the report."""

EXIT_CODE, STDERR, ENDED = "exit code", "standard error", "ended"
"""The topics."""
TOO_LATE, LEFT_BEHIND, ESCAPED = "--timeout", "left behind", "out of reach"
"""Why something was ended: a command took too long; processes outlived it; no worker could reach them."""
