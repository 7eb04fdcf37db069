"""The user's application: transactions of a Python file, called by N processes.

Workers report observations as sightings. These constants are their topics and trait values.
"""

WHOLE, BEGINNING, THREADED = "all statements", "the first statements", "until several threads were at work"
"""Extent to which the statements of a connection were examined."""
SINGLE_STATEMENT = "each statement alone"
"""Trait of transactions that consist of one statement."""
CONNECTION, EXCEPTION, UNSEEN = "connection", "exception", "connections not looked at"
UNREAD = "connections that could not be read"
"""Topic: connections with unreadable settings: a lock was taken, or threads used them at once."""
THREAD = "thread that did not end"
THREAD_RAISED, LOGGED = "exception of a thread", "logged error"
UNPROVED = "transactions without a row in the ledger"
SHARED = "connections that threads use at once"
SESSION, BEGINS = "session", "a session begins with"
"""Topics. SESSION: a connection to a server. BEGINS: the initial settings of a session, if no connection was
seen."""
HERE = "this"
"""Value instead of a path or schema, if it is the database of the trial."""
INSIDE = "inside: "
"""Prefix of the name of another database within the trial's folder."""
DECLARED = "off, declared"
"""Trait: foreign keys are off, although tables declare some."""


def is_trial_database(database: str) -> bool:
    """Return whether a database belongs to the trial: its database, or another database in its folder."""
    return database == HERE or database.startswith(INSIDE)
