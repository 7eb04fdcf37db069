"""What is counted of how commands answered, by the names that an Answer of the report has."""

EXIT_CODE, STDERR, ENDED = "exit code", "standard error", "ended"
"""What kinds of answers there are."""
TOO_LATE, LEFT_BEHIND, ESCAPED = "--timeout", "left behind", "out of reach"
"""Why something was ended: a command took too long; processes outlived it; no worker could reach them."""
