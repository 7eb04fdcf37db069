"""The user's application: transactions of a Python file, called by N worker processes.

A call runs a transaction once. With --start, only openings (calls of the user's @connect function) are
measured. A situation is the state of the database's files before the openings, such as "no file". The ledger
(--ledger) is a table with a row for each transaction that commits.

Workers report what they observe as sightings. A sighting has a topic, such as "connection", a count, and
traits: facts as a dict of texts, such as {"busy_timeout": "5000"}. The constants below are topics and texts.
"""

WHOLE, BEGINNING, THREADED = "all statements", "the first statements", "until several threads were at work"
"""Values of the fact "watched": the statements of a connection that a worker examined."""
SINGLE_STATEMENT = "each statement alone"
"""Value of the fact "writes_begin" for writes outside of BEGIN and COMMIT (autocommit)."""
CONNECTION, EXCEPTION, UNSEEN = "connection", "exception", "connections not looked at"
"""Topics: connections to SQLite files; exceptions of transactions; connections not examined.

UNSEEN is reported because a process examines only a limited number of connections.
"""
UNREAD = "connections that could not be read"
"""Topic of connections whose settings are unknown because of an error or several threads."""
THREAD = "thread that did not end"
THREAD_RAISED, LOGGED = "exception of a thread", "logged error"
UNPROVED = "transactions without a row in the ledger"
SHARED = "connections that threads use at once"
SESSION, BEGINS = "session", "a session begins with"
"""Topics of PostgreSQL settings: of the user's connections, and of a new connection.

BEGINS is reported instead of SESSION if no connection of the user could be read at the end of the load.
"""
USED_FILE = "used file"
"""Topic of the databases that connections used, even connections whose settings were not read."""
SCHEMA_CHECK = "check of the schema"
"""Topic of observations on code that reads the state of the schema, such as user_version.

The observation is the line in the user's file. It is reported if @connect failed because another process had
made the same schema change.
"""
HERE = "this"
"""Name for the trial's database in observations on connections."""
INSIDE = "inside: "
"""Prefix of names of other databases in the trial's folder, in observations on connections."""
PENDING_ROLLBACK = "sqlalchemy.exc.PendingRollbackError"
BROKEN_TRANSACTION = "django.db.transaction.TransactionManagementError"
"""Class names of exceptions that libraries raise if code uses a transaction after an error in it."""
BROKEN = "off, broken"
"""Value of the fact "foreign_keys" if the PRAGMA is off, and rows refer to rows that do not exist."""


def is_trial_database(database: str) -> bool:
    """Return whether `database`, from an observation, is in the trial's folder."""
    return database == HERE or database.startswith(INSIDE)
