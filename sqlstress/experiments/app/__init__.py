"""The user's application: transactions of a Python file, called by N worker processes.

A call runs a transaction once. With --start, only openings are measured. An opening is a call of the user's
@connect function; a situation is the state of the database's files before the openings. The ledger (--ledger)
is a table with a row for each transaction that commits.

Workers report observations (sightings). Each has a topic, a count, and traits, which are facts as text, by
name. The constants of this module are topics, and values of facts.
"""

WHOLE, BEGINNING, THREADED = "all statements", "the first statements", "until several threads were at work"
"""Values of the fact "watched": the statements of a connection that were examined."""
SINGLE_STATEMENT = "each statement alone"
"""Value of the fact "writes_begin" for writes outside of BEGIN and COMMIT (autocommit)."""
CONNECTION, EXCEPTION, UNSEEN = "connection", "exception", "connections not looked at"
"""Topics: connections to SQLite files; exceptions of transactions; connections not examined.

UNSEEN is reported because a process examines only a limited number of connections.
"""
UNREAD = "connections that could not be read"
"""Topic of connections whose settings were not read: the database was locked, or threads shared them."""
THREAD = "thread that did not end"
THREAD_RAISED, LOGGED = "exception of a thread", "logged error"
UNPROVED = "transactions without a row in the ledger"
SHARED = "connections that threads use at once"
SESSION, BEGINS = "session", "a session begins with"
"""Topics of PostgreSQL settings: SESSION for those of the user's connections, else BEGINS.

BEGINS has the settings with which a session begins. It is reported if no connection could be read.
"""
USED_FILE = "used file"
"""Topic of the databases that connections used, even connections whose settings were not read."""
SCHEMA_CHECK = "check of the schema"
"""Topic of the line in the user's file that reads the state of the schema, such as user_version.

It is reported if @connect failed because another process had made the same schema change.
"""
HERE = "this"
"""Name for the trial's database in observations on connections."""
INSIDE = "inside: "
"""Prefix of names of other databases in the trial's folder, in observations on connections."""
PENDING_ROLLBACK = "sqlalchemy.exc.PendingRollbackError"
BROKEN_TRANSACTION = "django.db.transaction.TransactionManagementError"
"""Class names of exceptions that libraries raise if code uses a transaction after an error in it."""
DECLARED = "off, declared"
"""Value of the fact "foreign_keys" if SQLite does not check the foreign keys that tables declare."""


def is_trial_database(database: str) -> bool:
    """Return whether `database`, from an observation, is in the trial's folder."""
    return database == HERE or database.startswith(INSIDE)
