"""An application of the user's: the transactions of a Python file, called by N processes.

Its workers tell of what they met in sightings, whose topics these are.
"""

WHOLE, BEGINNING, THREADED = "all statements", "the first statements", "until several threads were at work"
"""The statements of a connection that were seen."""
ALONE = "each statement alone"
"""How a transaction begins that is one statement."""
CONNECTION, EXCEPTION, UNSEEN = "connection", "exception", "connections not looked at"
UNREAD = "connections that could not be read"
"""Connections at work whose settings could not be read: a lock was taken, or threads used them at once."""
THREAD = "thread that did not end"
THREAD_RAISED, LOGGED = "exception of a thread", "logged error"
UNPROVED = "transactions without a row in the ledger"
SHARED = "connections that threads use at once"
SESSION, BEGINS = "session", "a session begins with"
"""A connection to a server; and what one begins with, where none was seen."""
HERE = "this"
"""Instead of a path, or a schema: the database of the trial."""
INSIDE = "inside: "
"""How the name of another database begins that lies in the trial's folder."""
DECLARED = "off, declared"
"""Foreign keys are off, and tables declare some."""


def belongs(database: str) -> bool:
    """Return whether a database that was used is the trial's: the one that was given, or one beside it."""
    return database == HERE or database.startswith(INSIDE)
