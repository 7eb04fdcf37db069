"""What workers of applications tell of: the topics of their sightings, and names in them."""

from __future__ import annotations

CONNECTION, EXCEPTION, UNSEEN = "connection", "exception", "connections not looked at"
HERE = "this"
"""Instead of a path: the database of the trial."""
DECLARED = "off, declared"
"""Foreign keys are off, and tables declare some."""
