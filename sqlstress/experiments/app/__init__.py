"""The user's application: transactions of a Python file, called by N worker processes.

A call runs a transaction once. With --start, only openings are measured: an opening is a call of the user's
@connect function, and a situation is the state of the database's files before. The ledger (--ledger) is a
table with a row for each transaction that commits.

Workers report observations (sightings), each with a topic, a count, and traits: facts as text, by name. The
constants of this module are topics, and values of traits.
"""

WHOLE, BEGINNING, THREADED = "all statements", "the first statements", "until several threads were at work"
"""Values of the fact "watched": the statements of a connection that were examined."""
SINGLE_STATEMENT = "each statement alone"
"""Value of the fact "writes_begin" for writes outside of BEGIN and COMMIT (autocommit)."""
CONNECTION, EXCEPTION, UNSEEN = "connection", "exception", "connections not looked at"
"""Topics: connections to SQLite files; exceptions of transactions; unexamined connections.

A process examines a limited number of connections.
"""
UNREAD = "connections that could not be read"
"""Topic of connections with unreadable settings: a locked database, or use by several threads."""
THREAD = "thread that did not end"
THREAD_RAISED, LOGGED = "exception of a thread", "logged error"
UNPROVED = "transactions without a row in the ledger"
SHARED = "connections that threads use at once"
SESSION, BEGINS = "session", "a session begins with"
"""Topics of PostgreSQL settings: those of a connection, and the initial ones of a session.

BEGINS is reported if no connection could be read.
"""
USED_FILE = "used file"
"""Topic of the databases that connections used, even if their settings were not read."""
SCHEMA_CHECK = "check of the schema"
"""Topic of the line in the user's file that reads the state of the schema, such as user_version.

Reported if a process failed to open the database because another had made the same schema change.
"""
HERE = "this"
"""Name of the trial's database in observations on connections."""
INSIDE = "inside: "
"""Prefix of the name of another database in the trial's folder, in observations on connections."""
PENDING_ROLLBACK = "sqlalchemy.exc.PendingRollbackError"
BROKEN_TRANSACTION = "django.db.transaction.TransactionManagementError"
"""Exceptions of a library whose transaction goes on after an error, by the names of their classes."""
DECLARED = "off, declared"
"""Value of the fact "foreign_keys": off, although tables declare foreign keys."""


def is_trial_database(database: str) -> bool:
    """Return whether `database`, from an observation, is in the trial's folder."""
    return database == HERE or database.startswith(INSIDE)
