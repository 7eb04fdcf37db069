"""The user's application: transactions of a Python file, called by N processes ("workers").

A call runs a transaction of the user's file once. With the option --start, only openings are measured: an
opening is a call of the file's @connect, and a situation is the state of the database's files before the
opening. The ledger (--ledger) is a table with a row for each transaction that commits.

Workers report observations as sightings. A sighting has a topic, a count, and traits: facts as text, by name.
The constants of this module are topics, and values of traits.
"""

WHOLE, BEGINNING, THREADED = "all statements", "the first statements", "until several threads were at work"
"""Values of the trait "watched": which statements of a connection were examined."""
SINGLE_STATEMENT = "each statement alone"
"""Value of the trait "writes_begin" for statements that write outside of BEGIN and COMMIT (autocommit)."""
CONNECTION, EXCEPTION, UNSEEN = "connection", "exception", "connections not looked at"
"""Topics: connections to SQLite files; exceptions of transactions; connections that are not examined, because
the process has too many connections."""
UNREAD = "connections that could not be read"
"""Topic of connections whose settings could not be read: the database was locked, or several threads used
the connection at once."""
THREAD = "thread that did not end"
THREAD_RAISED, LOGGED = "exception of a thread", "logged error"
UNPROVED = "transactions without a row in the ledger"
SHARED = "connections that threads use at once"
SESSION, BEGINS = "session", "a session begins with"
"""Topics of settings on PostgreSQL. SESSION: those of an observed connection. BEGINS: those with which a new
connection begins, reported if no observed connection could be read."""
USED_FILE = "used file"
"""Topic of the databases that connections have used, including connections whose settings are not read."""
SCHEMA_CHECK = "check of the schema"
"""Topic of the line in the user's file that reads the state of the schema, such as user_version.

Workers report the line if an opening failed because another process had made the same change of the schema.
"""
HERE = "this"
"""Text for the database of the trial: in the trait "database", and in sightings with the topic USED_FILE."""
INSIDE = "inside: "
"""Prefix in the trait "database" for the name of another database in the trial's folder."""
DECLARED = "off, declared"
"""Value of the trait "foreign_keys": foreign keys are off, although tables declare foreign keys."""


def is_trial_database(database: str) -> bool:
    """Return whether the trait "database" names a database in the trial's folder."""
    return database == HERE or database.startswith(INSIDE)
